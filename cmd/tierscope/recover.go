package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/experiment"
	"github.com/tierscope/tierscope/internal/units"
)

func newRecoverCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "recover RUN_DIR",
		Short: "Finish what a crash left of a run",
		Long: `Finishes a run that was killed: everything that its graph log still says is expanded, analysed and sealed with a
manifest, marked partial and not valid. A run whose engine had ended in order, and that was cut off only while it was
analysed, becomes complete. Nothing is recovered twice, and a run that is live or finished is refused.

With --json one document is printed: {"run_dir", "state", "rows", "log_bytes", "torn", "notes", "valid"}, where state
is partial or complete, log_bytes counts whole records, and torn is there if the last record was damaged.`,
		Example: `  tierscope recover results/model/run
  tierscope recover results/model/cut --json | jq .rows`,
		Args: oneArg("run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := experiment.Recover(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(r)
			}
			fmt.Fprintf(a.stdout, "%s: %s, %d rows from %s of graph log\n", r.Dir, r.State, r.Rows, units.Bytes(float64(r.Bytes)))
			if r.Torn != "" {
				fmt.Fprintf(a.stdout, "  %s\n", r.Torn)
			}
			return nil
		},
	}
}
