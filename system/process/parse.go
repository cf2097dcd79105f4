package process

import (
	"bytes"
	"errors"
	"math"
	"os"
)

const (
	// tick is the kernel's USER_HZ, 100 on every architecture that Go knows.
	tick = 10_000_000 // ns
)

var (
	pageSize = uint64(os.Getpagesize())
	nan      = math.NaN()

	errFormat = errors.New("not in the form of proc(5)")
)

// stat is what of /proc/PID/stat is used.
type stat struct {
	state                                        byte
	minflt, majflt, utime, stime, threads, vsize uint64
}

// parse reads the line. The name, in parentheses, may hold anything, also blanks
// and parentheses: the fields begin behind the last one.
func (s *stat) parse(line []byte) error {
	i := bytes.LastIndexByte(line, ')')
	if i < 0 || i+3 >= len(line) || line[i+1] != ' ' {
		return errFormat
	}
	s.state = line[i+2]
	rest := line[i+3:]
	for field := 4; field <= 23; field++ {
		v, tail, ok := nextNumber(rest)
		if !ok {
			return errFormat
		}
		rest = tail
		switch field {
		case 10:
			s.minflt = v
		case 12:
			s.majflt = v
		case 14:
			s.utime = v
		case 15:
			s.stime = v
		case 20:
			s.threads = v
		case 23:
			s.vsize = v
		}
	}
	return nil
}

// parseStatm reads the first numbers: mapped, resident, shared, in pages.
func parseStatm(line []byte, out *[3]uint64) error {
	for i := range out {
		v, rest, ok := nextNumber(line)
		if !ok {
			return errFormat
		}
		out[i], line = v, rest
	}
	return nil
}

// parseIO reads the lines of /proc/PID/io.
func parseIO(text []byte, s *Sample) error {
	found := 0
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		i := bytes.IndexByte(line, ':')
		if i < 0 {
			return errFormat
		}
		v, _, ok := nextNumber(line[i+1:])
		if !ok {
			return errFormat
		}
		found++
		switch string(line[:i]) {
		case "rchar":
			s.ReadCalls = v
		case "wchar":
			s.WriteCalls = v
		case "read_bytes":
			s.ReadBytes = v
		case "write_bytes":
			s.WriteBytes = v
		default:
			found--
		}
	}
	if found != 4 {
		return errFormat
	}
	return nil
}

// nextNumber reads a decimal number behind blanks; a negative one counts as 0.
func nextNumber(b []byte) (v uint64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	from := i
	for i < len(b) && b[i]-'0' <= 9 {
		d := uint64(b[i] - '0')
		if v > (math.MaxUint64-d)/10 {
			return 0, nil, false
		}
		v = v*10 + d
		i++
	}
	if i == from || i < len(b) && b[i] != ' ' {
		return 0, nil, false
	}
	if negative {
		v = 0
	}
	return v, b[i:], true
}
