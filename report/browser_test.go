package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tierscope/tierscope/report/reporttest"
)

// browser is a Chromium that shows pages of data.
type browser struct {
	*reporttest.Browser
	t *testing.T
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	return &browser{reporttest.Start(t), t}
}

// open renders d and opens the page in a window of the given size.
func (b *browser) open(d *Data, width, height int) {
	b.t.Helper()
	var page bytes.Buffer
	if err := Render(&page, d); err != nil {
		b.t.Fatal(err)
	}
	file := filepath.Join(b.t.TempDir(), "report.html")
	if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.Open(file, width, height)
}
