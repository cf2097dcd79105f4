package fetch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/tierscope/tierscope/run"
)

// client is a package client.
type client int

const (
	pip client = iota
	npm
)

func (c client) String() string { return [...]string{"pip", "npm"}[c] }

// missing says what to do without the client.
var missing = [...]string{
	pip: "python3 with pip is needed to fetch it: apt-get install -y python3-pip",
	npm: "npm is needed to fetch it: apt-get install -y npm",
}

// download brings the archives of all packages to dir, by one call a client.
func download(ctx context.Context, pkgs []pkg, dir string, p Progress) error {
	for _, c := range []client{pip, npm} {
		var names []string
		for _, k := range pkgs {
			if k.client == c {
				names = append(names, k.name)
			}
		}
		if len(names) == 0 {
			continue
		}
		p.printf("  %s: %s", c, strings.Join(names, " "))
		if err := c.run(ctx, names, dir); err != nil {
			return err
		}
	}
	for _, k := range pkgs {
		if _, err := os.Stat(dir + "/" + k.archive); err != nil {
			return run.Errorf(run.Corrupt, "%s brought no %s for %s", k.client, k.archive, k.name)
		}
	}
	return nil
}

// run calls the client in dir. --no-deps and pack never run code of a package.
func (c client) run(ctx context.Context, names []string, dir string) error {
	args := []string{"python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
		"--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--retries", "2", "--dest", "."}
	if c == npm {
		args = []string{"npm", "pack", "--loglevel", "error", "--ignore-scripts", "--fetch-retries", "2",
			"--fetch-retry-mintimeout", "500", "--fetch-retry-maxtimeout", "4000", "--pack-destination", "."}
	}
	cmd := exec.CommandContext(ctx, args[0], append(args[1:], names...)...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound), strings.Contains(out.String(), "No module named pip"):
		return run.Errorf(run.Capability, "%s", missing[c])
	case anyOf(out.String(), "No space left", "ENOSPC"):
		return run.Errorf(run.IO, "%s: no space left in %s; free about 1 GB or set TIERSCOPE_CACHE", c, dir)
	case anyOf(out.String(), offline...):
		return run.Errorf(run.IO, "%s cannot reach its registry (%s); check network and proxy, or set TIERSCOPE_CACHE to a cache that has it", c, reason(out.String()))
	}
	return run.Errorf(run.IO, "%s: %w: %s", c, err, reason(out.String()))
}

// offline are the clients' words for a registry that cannot be reached. pip
// says only "from versions: none" when every try failed.
var offline = []string{
	"NewConnectionError", "NameResolutionError", "ConnectTimeout", "ReadTimeout", "ProxyError", "SSLError", "from versions: none",
	"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH",
}

func anyOf(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// reason picks the line of a client's output that says why, short.
func reason(out string) string {
	why := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "npm error"))
		if rest, ok := strings.CutPrefix(line, "ERROR: "); ok {
			line, why = rest, rest
		}
		if line != "" && why == "" || strings.HasPrefix(line, "code E") {
			why = line
		}
	}
	if len(why) > 160 {
		why = why[:160] + "..."
	}
	if why == "" {
		return "it said nothing"
	}
	return why
}
