package ggml

// shortcutEntry returns the address of the code, in C's calling convention, to be put
// into a jump slot.
func shortcutEntry() uintptr
