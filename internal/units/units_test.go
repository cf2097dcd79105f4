package units

import "testing"

func TestParseBytes(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "4096": 4096, "4k": 4096, "64MiB": 64 << 20, " 1.5 GB ": 1_500_000_000, "2TiB": 2 << 40, "100 b": 100, "1kb": 1000,
	} {
		if got, err := ParseBytes(in); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "GiB", "-1", "-1k", "1 parsec", "1e30", "9999999TiB", "1..2k", "NaN", "inf"} {
		if got, err := ParseBytes(in); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", in, got)
		}
	}
}

func TestPrint(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Bytes(0), "0 B"}, {Bytes(1023), "1023 B"}, {Bytes(4096), "4 KiB"}, {Bytes(1.5 * (1 << 30)), "1.5 GiB"}, {Bytes(3 << 40), "3 TiB"},
		{Bytes(123456789), "117.7 MiB"}, {Bytes(-2048), "-2 KiB"},
		{Seconds(0), "0 s"}, {Seconds(12.34567), "12.35 s"}, {Seconds(0.0042), "4.2 ms"}, {Seconds(7e-6), "7 us"}, {Seconds(33e-9), "33 ns"},
		{Seconds(1e5), "100000 s"}, {Number(0.98765), "0.988"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func FuzzParseBytes(f *testing.F) {
	f.Add("64MiB")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseBytes(s); err == nil && n < 0 {
			t.Errorf("ParseBytes(%q) = %d", s, n)
		}
	})
}
