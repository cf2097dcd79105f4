//go:build !amd64

package ggml

// shortcutEntry says that there is no shortcut for this processor.
func shortcutEntry() uintptr { return 0 }
