//go:build slow

package tensorgraph_test

import (
	"strings"
	"testing"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/engine/llamacpp"
)

// TestGemmaIsExact observes the second real model: a sliding window of 512 tokens
// that the text outgrows, weights that the engine repacks, tied embedding.
func TestGemmaIsExact(t *testing.T) {
	path, err := fetch.Gemma(t.Context(), nil)
	if err != nil {
		t.Fatalf("model: %v", err)
	}
	f := open(t, path)
	window := func(l int) bool { return (l+1)%6 != 0 }
	for _, flash := range []string{"auto", "off"} {
		c := cellRun{job: llamacpp.Job{Context: 1536, MicroBatch: 128, FlashAttn: flash, Prompts: prompts(
			llamacpp.Prompt{Text: strings.Repeat("The keeper of the lighthouse looked at the sea, and the sea looked back. ", 45), Output: 12},
			llamacpp.Prompt{Text: "Then", Output: 8, Keep: true})},
			// A window and a micro batch, rounded up.
			cells:  func(l int) int { return map[bool]int{true: 768, false: 1536}[window(l)] },
			window: func(l int) int { return map[bool]int{true: 512, false: 0}[window(l)] },
		}
		v := watch(t, f, c.job)
		if n := v.res.Outputs[0].PromptTokens; n < 650 {
			t.Fatalf("a prompt of %d tokens does not outgrow the window", n)
		}
		n := checkRepack(t, v, f)
		t.Logf("flash attention %s: %d of %d weights repacked", flash, n, len(f.Tensors))
		checkPrefill(t, v, f)
		checkCells(t, v, f, &c)
	}
}
