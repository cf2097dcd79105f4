package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
)

// assets are the page's own files and the vendored plotting library:
// assets/vendor/uPlot.* is uplot 1.6.32 from npm, unchanged, under the licence
// beside it; a test pins its checksums.
//
//go:embed assets
var assets embed.FS

// pageTemplate is parsed once, at start; a broken template is a broken build.
var pageTemplate = template.Must(template.New("page.html").ParseFS(assets, "assets/page.html"))

var styles, scripts, policy = load()

// load reads what the page embeds and names it in the content security policy.
// Nothing else may run or be fetched.
func load() (css []template.CSS, js []template.JS, csp string) {
	dark := asset("dark.css")
	theme := "@media screen and (prefers-color-scheme: dark) { :root:not([data-theme=light]) {\n" + dark + "} }\n" +
		"@media screen { :root[data-theme=dark] {\n" + dark + "} }\n"
	css = []template.CSS{
		template.CSS(asset("vendor/uPlot.min.css")),
		template.CSS(asset("report.css") + theme),
	}
	for _, f := range []string{"vendor/uPlot.iife.min.js", "format.js", "chart.js", "figures.js", "page.js"} {
		js = append(js, template.JS(asset(f)))
	}
	var s, t []string
	for _, c := range css {
		s = append(s, source(string(c)))
	}
	for _, j := range js {
		t = append(t, source(string(j)))
	}
	return css, js, fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'",
		strings.Join(s, " "), strings.Join(t, " "))
}

func asset(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // embedded: cannot be missing in a program that was built
	}
	return string(b)
}

func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
