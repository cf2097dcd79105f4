package manual

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestWrite(t *testing.T) {
	root := &cobra.Command{Use: "prog"}
	root.PersistentFlags().Bool("json", false, "print JSON")
	do := func(*cobra.Command, []string) {}
	fly := &cobra.Command{Use: "fly DIR", Short: "Take off", Long: "Fly goes up.\n", Aliases: []string{"soar"}, Run: do, Example: `
  prog fly here
  # high
  prog fly \
    --to 9`}
	fly.Flags().StringP("to", "t", "7", "`height` in m, x|y")
	fly.Flags().Bool("secret", false, "")
	if err := fly.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	parent := &cobra.Command{Use: "log", Short: "The log."}
	parent.AddCommand(&cobra.Command{Use: "show", Short: "Show it", Run: do})
	root.AddCommand(fly, parent, &cobra.Command{Use: "hidden", Hidden: true, Run: do})
	var b strings.Builder
	if err := Write(&b, root); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`# Commands

Written by 'make docs' from the program itself.

Every command takes

| flag | default | |
|---|---|---|
| '--json' |  | print JSON |

## prog fly

Take off.

Fly goes up.

    prog fly DIR [flags]

Also: 'soar'.

'''console
$ prog fly here
# high
$ prog fly \
> --to 9
'''

| flag | default | |
|---|---|---|
| '-t, --to height' | '7' | height in m, x\|y |

## prog log

The log.

## prog log show

Show it.

    prog log show
`, "'", "`")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
