// Package manual writes the reference of a command line from the commands
// themselves, so that the two cannot differ.
package manual

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Write writes a Markdown page with a section for every visible command below
// root, in their order: what it does, how it is called, its examples as console
// blocks, its flags.
func Write(w io.Writer, root *cobra.Command) error {
	p := &page{}
	p.printf("# Commands\n\n")
	p.printf("Written by `make docs` from the program itself.\n\n")
	if f := table(root.PersistentFlags()); f != "" {
		p.printf("Every command takes\n\n%s", f)
	}
	for _, c := range visible(root) {
		p.command(c)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

type page struct{ strings.Builder }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *page) command(c *cobra.Command) {
	p.printf("\n## %s\n\n%s.\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
	if c.Long != "" {
		p.printf("\n%s\n", strings.TrimSpace(c.Long))
	}
	if c.Runnable() {
		p.printf("\n    %s\n", c.UseLine())
	}
	if len(c.Aliases) > 0 {
		p.printf("\nAlso: `%s`.\n", strings.Join(c.Aliases, "`, `"))
	}
	if c.Example != "" {
		p.printf("\n```console\n%s```\n", console(c.Example))
	}
	if f := table(c.LocalNonPersistentFlags()); f != "" {
		p.printf("\n%s", f)
	}
	for _, sub := range visible(c) {
		p.command(sub)
	}
}

// visible returns the commands below c that a user is meant to see, without those
// that cobra adds to every program.
func visible(c *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			list = append(list, sub)
		}
	}
	return list
}

// console turns an example, commands and remarks indented by two blanks, into
// lines as a terminal shows them. A line that ends with \ goes on in the next.
func console(example string) string {
	var b strings.Builder
	goesOn := false
	for line := range strings.Lines(strings.Trim(example, "\n") + "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			b.WriteString("\n")
		case goesOn:
			b.WriteString("> " + line + "\n")
		case strings.HasPrefix(line, "#"):
			b.WriteString(line + "\n")
		default:
			b.WriteString("$ " + line + "\n")
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	return b.String()
}

func table(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if b.Len() == 0 {
			b.WriteString("| flag | default | |\n|---|---|---|\n")
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		value := f.DefValue
		if value == "[]" || value == "false" {
			value = ""
		}
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, value, strings.ReplaceAll(usage, "|", `\|`))
	})
	return b.String()
}
