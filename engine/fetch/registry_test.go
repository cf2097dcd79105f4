package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
)

// registry serves one wheel to pip and one package to npm on this machine: the
// clients are the real ones.
type registry struct {
	*httptest.Server
	wheel, tgz []byte
	downloads  atomic.Int32  // of archives
	stall      atomic.Bool   // archives never arrive
	asked      chan struct{} // a stalled download has begun
	pip, npm   *Item         // what is served
}

const (
	wheelName = "tiny_model-1.0-py3-none-any.whl"
	tgzName   = "tiny-libs-2.0.0.tgz"
	model     = "the model, all of it"
)

func needClient(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Skipf("%s does not run here: %v %s", name, err, out)
	}
}

// newRegistry starts a registry, points both clients and the cache to it, and
// describes its two items.
func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{asked: make(chan struct{}, 1)}
	r.wheel = makeWheel(t)
	r.tgz = makeTgz(t)
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	t.Setenv("TIERSCOPE_CACHE", t.TempDir())
	t.Setenv("PIP_INDEX_URL", r.URL+"/simple")
	t.Setenv("PIP_NO_CACHE_DIR", "1")
	t.Setenv("PIP_RETRIES", "0")
	t.Setenv("npm_config_registry", r.URL+"/npm/")
	t.Setenv("npm_config_cache", t.TempDir())
	t.Setenv("npm_config_fetch_retries", "0")
	t.Setenv("npm_config_update_notifier", "false")
	for _, v := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "npm_config_proxy", "npm_config_https_proxy"} {
		t.Setenv(v, "")
	}
	t.Setenv("no_proxy", "127.0.0.1")
	r.pip = tinyModel(sum(r.wheel))
	r.npm = &Item{Name: "tinylibs", What: "tiny libraries", Licence: "CC0", folder: "tiny-libs-2.0.0",
		pkgs:  []pkg{{npm, "tiny-libs@2.0.0", "npm", tgzName, sum(r.tgz)}},
		files: []file{{dir: "package/bins"}, {name: "LICENSE", members: []string{"package/LICENSE"}}},
		links: map[string]string{"liba.so": "liba.v1.so"}}
	return r
}

// tinyModel is the item in a wheel of the given sum.
func tinyModel(wheel string) *Item {
	return &Item{Name: "tiny", What: "a tiny model", Licence: "CC0", folder: "tiny-model-1.0", main: "tiny.gguf",
		pkgs: []pkg{{pip, "tiny-model==1.0", "PyPI", wheelName, wheel}},
		files: []file{
			{name: "tiny.gguf", sum: sum([]byte(model)), members: []string{"tiny_model/part0", "tiny_model/part1", "tiny_model/part2"}},
			{name: "LICENSE", members: []string{"tiny_model/LICENSE"}},
		}}
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func (r *registry) serve(w http.ResponseWriter, q *http.Request) {
	switch path := q.URL.Path; {
	case strings.HasSuffix(path, wheelName), strings.HasSuffix(path, tgzName):
		r.downloads.Add(1)
		if r.stall.Load() {
			w.Header().Set("Content-Length", "1000000")
			w.WriteHeader(http.StatusOK)
			w.Write(make([]byte, 1000))
			w.(http.Flusher).Flush()
			r.asked <- struct{}{}
			<-q.Context().Done()
			return
		}
		b := r.wheel
		if strings.HasSuffix(path, tgzName) {
			b = r.tgz
		}
		w.Write(b)
	case path == "/simple/tiny-model/":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<html><body><a href=%q>%s</a></body></html>", r.URL+"/files/"+wheelName, wheelName)
	case path == "/npm/tiny-libs":
		one := sha1.Sum(r.tgz)
		json.NewEncoder(w).Encode(map[string]any{
			"name": "tiny-libs", "dist-tags": map[string]string{"latest": "2.0.0"},
			"versions": map[string]any{"2.0.0": map[string]any{"name": "tiny-libs", "version": "2.0.0",
				"dist": map[string]string{"tarball": r.URL + "/files/" + tgzName, "shasum": hex.EncodeToString(one[:])}}},
		})
	default:
		http.NotFound(w, q)
	}
}

func makeWheel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range [][2]string{
		{"tiny_model/part2", model[15:]}, // the order in the archive does not matter
		{"tiny_model/part0", model[:4]},
		{"tiny_model/part1", model[4:15]},
		{"tiny_model/LICENSE", "free"},
		{"tiny_model/__init__.py", "raise SystemExit('code of a package was run')"},
		{"../evil", "evil"},
		{"tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"},
		{"tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"tiny_model-1.0.dist-info/RECORD", ""},
	} {
		w, err := z.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(f[1]))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func makeTgz(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for _, f := range []tar.Header{
		{Name: "package/package.json", Linkname: `{"name":"tiny-libs","version":"2.0.0","scripts":{"prepack":"exit 9","postpack":"exit 9"}}`},
		{Name: "package/LICENSE", Linkname: "free"},
		{Name: "package/bins/liba.v1.so", Linkname: "library a"},
		{Name: "package/bins/sub/deep.so", Linkname: "not directly in it"},
		{Name: "package/bins/../../evil", Linkname: "evil"},
		{Name: "package/bins/stamp.json", Linkname: "{}"},
		{Name: "package/bins/evil", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink},
	} {
		body := ""
		if f.Typeflag == 0 {
			f.Typeflag, body, f.Linkname = tar.TypeReg, f.Linkname, ""
		}
		f.Mode, f.Size = 0o644, int64(len(body))
		if err := w.WriteHeader(&f); err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(body))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// list returns the names in a directory.
func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
