package probe

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/tierscope/tierscope/internal/vfs"
)

// program runs a program to its end and returns what it printed: stdout, then
// stderr. Programs that it started end with it.
func program(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return stdout.String() + stderr.String(), err
}

// firstLine returns the first line that is not blank, cut short.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			if len(line) > 120 {
				line = line[:120] + "..."
			}
			return line
		}
	}
	return ""
}

// tool judges a program by a run of it.
func tool(ctx context.Context, fix, name string, args ...string) verdict {
	out, err := program(ctx, name, args...)
	switch {
	case err == nil:
		return yes("%s", firstLine(out))
	case errors.Is(err, exec.ErrNotFound):
		return no(fix, "%s is not installed", name)
	}
	line := firstLine(out)
	if line == "" {
		line = err.Error()
	}
	return no(fix, "%s: %s", name, line)
}

func install(pkg string) string { return "apt-get install -y " + pkg }

func python(ctx context.Context, _ Options) verdict {
	return tool(ctx, install("python3"), "python3", "--version")
}

func pip(ctx context.Context, _ Options) verdict {
	return tool(ctx, install("python3-pip"), "python3", "-c", "import pip; print('pip', pip.__version__)")
}

func npm(ctx context.Context, _ Options) verdict {
	v := tool(ctx, install("npm"), "npm", "--version")
	if v.ok {
		v.why = "npm " + v.why
	}
	return v
}

func perfTool(ctx context.Context, _ Options) verdict {
	return tool(ctx, install("linux-perf"), "perf", "--version")
}

func valgrind(ctx context.Context, _ Options) verdict {
	v := tool(ctx, install("valgrind"), "valgrind", "--tool=lackey", "--log-file=/dev/null", "true")
	if v.ok {
		v.why = "lackey ran a program"
	}
	return v
}

func memray(ctx context.Context, _ Options) verdict {
	v := tool(ctx, "python3 -m pip install memray, in a virtual environment", "python3", "-c", "import memray; print('memray', memray.__version__)")
	if !v.ok && strings.HasPrefix(v.why, "python3: Traceback") {
		v.why = "python3 cannot import memray"
	}
	return v
}

// chromium lets a browser run a script on a page.
func chromium(ctx context.Context, _ Options) verdict {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		profile, err := os.MkdirTemp("", "tierscope-chromium-")
		if err != nil {
			return no("", "%v", err)
		}
		defer os.RemoveAll(profile)
		args := []string{"--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--user-data-dir=" + profile,
			"--dump-dom", "data:text/html,<b id=x>tier</b><script>x.textContent+=6*7</script>"}
		if os.Getuid() == 0 {
			args = append(args, "--no-sandbox")
		}
		out, err := program(ctx, name, args...)
		if err != nil || !strings.Contains(out, ">tier42<") {
			return no(install("chromium"), "%s did not show a page: %s", name, firstLine(out))
		}
		return yes("%s ran a script on a page", name)
	}
	return no(install("chromium"), "chromium is not installed")
}

// platform says whether the engine libraries that are fetched fit.
func platform(context.Context, Options) verdict {
	if runtime.GOARCH != "amd64" {
		return no("use a libllama of your own (--lib)", "the engine libraries are for x86-64, this is %s", runtime.GOARCH)
	}
	return yes("linux/%s", runtime.GOARCH)
}

// jumpSlot says whether the hook without cost exists for this machine. Whether a
// libllama has the slot shows when it is loaded.
func jumpSlot(context.Context, Options) verdict {
	if runtime.GOARCH != "amd64" {
		return no("", "the hook is for x86-64, this is %s: the callback is used and costs 8 to 17 %% of decode speed", runtime.GOARCH)
	}
	return yes("the hook for x86-64 is built in")
}

// demoSpace is what a demo needs for model, libraries and its run, in bytes.
const demoSpace = 1 << 30

func disk(_ context.Context, o Options) verdict {
	free, err := freeSpace(o.Dir)
	if err != nil {
		return no("choose a directory that exists and can be read", "%v", err)
	}
	if free < demoSpace {
		return no("free some space, or choose another directory", "%d MiB free, less than %d MiB", free>>20, int64(demoSpace)>>20)
	}
	return yes("%.1f GiB free", float64(free)/(1<<30))
}

// freeSpace returns the free bytes where dir is or would be made.
func freeSpace(dir string) (uint64, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	for {
		free, err := vfs.OS.Free(dir)
		if !os.IsNotExist(err) || dir == filepath.Dir(dir) {
			return free, err
		}
		dir = filepath.Dir(dir)
	}
}
