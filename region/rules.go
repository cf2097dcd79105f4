package region

import (
	"regexp"
	"unicode"
	"unicode/utf8"

	"github.com/tierscope/tierscope/observe"
)

// Access is what a symbol rule looks at. The text of an absent or null column
// is empty.
type Access struct {
	Symbol, DSO, Phase, Op string
}

// Rule gives a region type to the accesses that it fits. Rules are tried in
// order and the first that fits wins.
type Rule struct {
	Type  string
	Phase string // exact phase; "" fits any
	Op    string // exact operation type; "" fits any
	// Symbol and DSO are searched anywhere in the text; nil fits any.
	Symbol, DSO *regexp.Regexp
	// WordEnd is a second pattern for Symbol's place, a match of which counts
	// only where a word ends behind it: letters and digits of any script and
	// _ continue a word.
	WordEnd *regexp.Regexp
}

// Fits reports whether r fits a.
func (r *Rule) Fits(a Access) bool {
	if r.Phase != "" && r.Phase != a.Phase || r.Op != "" && r.Op != a.Op {
		return false
	}
	if r.DSO != nil && !r.DSO.MatchString(a.DSO) {
		return false
	}
	if r.Symbol == nil && r.WordEnd == nil {
		return true
	}
	return r.Symbol != nil && r.Symbol.MatchString(a.Symbol) || r.WordEnd != nil && matchesWordEnd(r.WordEnd, a.Symbol)
}

func matchesWordEnd(re *regexp.Regexp, s string) bool {
	for _, m := range re.FindAllStringIndex(s, -1) {
		next, n := utf8.DecodeRuneInString(s[m[1]:])
		if n == 0 || next != '_' && !unicode.IsLetter(next) && !unicode.IsNumber(next) {
			return true
		}
	}
	return false
}

// DefaultRules are mrm-trace's rules in its order, made for the symbols of
// llama.cpp and the C library. Its first rule, stores while weights are
// loaded, is part of its second.
var DefaultRules = []Rule{
	{Type: observe.ClassWeight, Phase: observe.PhaseWeightLoad},
	{Type: observe.ClassKVCache, Symbol: regexp.MustCompile(`(?i)kv_(?:cache|update|read|write)|attn_cache|llama_kv`)},
	{Type: observe.ClassWeight, Symbol: regexp.MustCompile(`(?i)ggml_(?:vec_dot|mul_mat|q[48]_k)`), WordEnd: regexp.MustCompile(`(?i)ggml_q[48]`)},
	{Type: observe.ClassWeight, Symbol: regexp.MustCompile(`(?i)ggml_(?:init|new_tensor|set_)|model_load|load_(?:model|weight)`)},
	{Type: observe.ClassActivation, Symbol: regexp.MustCompile(`(?i)ggml_(?:compute|add|silu|(?:rms_)?norm|rope)`)},
	{Type: observe.ClassRuntime, Symbol: regexp.MustCompile(`(?i)^(?:(?:[mc]|re)alloc|free|m(?:un)?map|brk)\n?$`)},
}

// Classify returns the type that the first of rules that fits a gives, and
// whether there is one.
func Classify(rules []Rule, a Access) (string, bool) {
	for i := range rules {
		if rules[i].Fits(a) {
			return rules[i].Type, true
		}
	}
	return "", false
}
