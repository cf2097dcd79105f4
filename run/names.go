package run

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name of a model or run in bytes, short of the 255 of
// Linux by room for a temporary name's extra.
const maxName = 200

// CheckName reports whether name can be a directory of the results: one path
// element that stays where it is put and prints on one line. What says which name
// it is (model id, run id); the error is of class [Misuse].
func CheckName(what, name string) error {
	bad := ""
	switch {
	case name == "":
		bad = "is empty"
	case len(name) > maxName:
		return Errorf(Misuse, "%s %.40q... is %d bytes long: at most %d", what, name, len(name), maxName)
	case name == "." || strings.Contains(name, ".."):
		bad = "has dots that lead out of the directory"
	case strings.HasPrefix(name, "."):
		bad = "begins with a dot"
	case strings.ContainsAny(name, `/\`):
		bad = "has a slash"
	case !utf8.ValidString(name):
		bad = "is not UTF-8"
	case strings.ContainsFunc(name, unprintable):
		bad = "has a control character"
	case strings.TrimSpace(name) != name:
		bad = "begins or ends with a blank"
	default:
		return nil
	}
	return Errorf(Misuse, "%s %q %s: use letters, digits, '-', '_', '.'", what, name, bad)
}

func unprintable(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }
