//go:build linux

package llamacpp

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hybridgroup/yzma/pkg/llama"

	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// session is a loaded model at work.
type session struct {
	job     *Job
	out     *emitter
	stopped *atomic.Bool
	lib     *library
	hook    *ggml.Hook
	model   llama.Model
	ctx     llama.Context
	mem     llama.Memory
	vocab   llama.Vocab
	words   bool // the model has a vocabulary
	batch   llama.Batch
	kv      [][]llama.Token // by sequence: tokens whose keys and values are in the cache
	conv    []conversation  // by sequence
}

// conversation is what a follow-up goes on from.
type conversation struct {
	messages []llama.ChatMessage
	text     string        // everything said so far, as the model saw it
	tokens   []llama.Token // the same, with the last token generated, which the cache lacks
}

// request is a prompt at work.
type request struct {
	*Prompt
	index    uint32
	seq      int32
	tokens   []llama.Token
	reused   int
	limit    int
	next     llama.Token
	made     []llama.Token
	text     strings.Builder
	sampler  llama.Sampler
	out      trace.Output
	finished bool
}

// waves groups the prompts that run together: up to one per sequence. A
// follow-up runs in the sequence of the prompt before it, after it.
func (s *session) waves() [][]*request {
	var all [][]*request
	var wave []*request
	used := map[int32]bool{}
	seq := int32(-1)
	for i := range s.job.Prompts {
		p := &s.job.Prompts[i]
		if !p.Keep || seq < 0 {
			seq = (seq + 1) % int32(s.job.Sequences)
		}
		if used[seq] {
			all, wave = append(all, wave), nil
			clear(used)
		}
		used[seq] = true
		wave = append(wave, &request{Prompt: p, index: uint32(i), seq: seq})
	}
	return append(all, wave)
}

func (s *session) wave(reqs []*request) error {
	for i, r := range reqs {
		if s.stopped.Load() {
			reqs = reqs[:i]
			break
		}
		if err := s.prepare(r); err != nil {
			return err
		}
		if err := s.prefill(r); err != nil {
			return err
		}
	}
	for {
		var active []*request
		for _, r := range reqs {
			if !r.finished {
				active = append(active, r)
			}
		}
		if len(active) == 0 {
			break
		}
		// llama.cpp joins sequences into one graph only in rising order.
		slices.SortFunc(active, func(a, b *request) int { return cmp.Compare(a.seq, b.seq) })
		if err := s.decode(active); err != nil {
			return err
		}
	}
	return nil
}

// prepare turns the prompt into tokens and frees what the cache holds beyond
// what they share with it.
func (s *session) prepare(r *request) error {
	r.out = trace.Output{Request: r.index, Seq: r.seq, Prompt: r.Text, Category: r.Category, Start: now()}
	c := &s.conv[r.seq]
	if !r.Keep {
		*c = conversation{}
	}
	r.tokens = s.tokenize(r, c)
	if err := s.fits(r, len(r.tokens)); err != nil {
		return err
	}
	r.limit = min(r.Output, s.job.Context-len(r.tokens))
	old := s.kv[r.seq]
	for r.reused < len(old) && r.reused < len(r.tokens)-1 && old[r.reused] == r.tokens[r.reused] {
		r.reused++
	}
	if !r.Keep {
		r.reused = 0
	}
	if r.reused < len(old) {
		if err := s.remove(r.seq, r.reused); err != nil {
			return err
		}
		r.reused = len(s.kv[r.seq])
	}
	r.sampler = s.newSampler(r.index)
	return nil
}

// fits refuses a prompt of n tokens, with the conversation before it, that leaves no
// room to generate.
func (s *session) fits(r *request, n int) error {
	switch {
	case n == 0:
		return run.Errorf(run.Misuse, "prompt %d is empty after tokenization: give it text", r.index+1)
	case n >= s.job.Context && r.Keep:
		return run.Errorf(run.Misuse, "prompt %d makes a conversation of %d tokens and the context is %d: shorten it or raise the context length", r.index+1, n, s.job.Context)
	case n >= s.job.Context:
		return run.Errorf(run.Misuse, "prompt %d has %d tokens and the context %d: shorten it or raise the context length", r.index+1, n, s.job.Context)
	}
	return nil
}

// check refuses prompts that cannot be run, before the first is: all but
// follow-ups, whose length depends on what is generated.
func (s *session) check() error {
	for i := range s.job.Prompts {
		if p := &s.job.Prompts[i]; !p.Keep {
			r := &request{Prompt: p, index: uint32(i)}
			if err := s.fits(r, len(s.tokenize(r, &conversation{}))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) newSampler(request uint32) llama.Sampler {
	chain := llama.SamplerChainInit(llama.SamplerChainDefaultParams())
	if s.job.Temperature <= 0 {
		llama.SamplerChainAdd(chain, llama.SamplerInitGreedy())
		return chain
	}
	llama.SamplerChainAdd(chain, llama.SamplerInitTemp(float32(s.job.Temperature)))
	llama.SamplerChainAdd(chain, llama.SamplerInitDist(uint32(s.job.Seed)+request))
	return chain
}

// tokenize gives the tokens of the whole conversation with this prompt at its
// end, and keeps the text they stand for.
func (s *session) tokenize(r *request, c *conversation) []llama.Token {
	var more []llama.Token
	switch {
	case r.Tokens > 0:
		rng := rand.New(rand.NewPCG(s.job.Seed, uint64(r.index)))
		n := llama.VocabNTokens(s.vocab)
		for range r.Tokens {
			more = append(more, llama.Token(rng.Int32N(n)))
		}
	case !s.words:
		// No vocabulary: one token a word, the same word always the same token.
		for _, w := range strings.Fields(r.Text) {
			h := fnv.New32a()
			h.Write([]byte(w))
			more = append(more, llama.Token(h.Sum32()%uint32(llama.VocabNTokens(s.vocab))))
		}
	default:
		text := s.chatText(r, c)
		more = llama.Tokenize(s.vocab, text, len(c.tokens) == 0, true)
		c.text += text
	}
	return append(append([]llama.Token{}, c.tokens...), more...)
}

// chatText is the prompt as the model expects it: in its chat template, less
// what has been said before.
func (s *session) chatText(r *request, c *conversation) string {
	template := llama.ModelChatTemplate(s.model, "")
	if !s.job.Chat || template == "" {
		return r.Text
	}
	c.messages = append(c.messages, llama.NewChatMessage("user", r.Text))
	buf := make([]byte, 4096+4*(len(c.text)+len(r.Text)))
	n := llama.ChatApplyTemplate(template, c.messages, true, buf)
	if n <= 0 || int(n) > len(buf) {
		return r.Text
	}
	full := string(buf[:n])
	if rest, ok := strings.CutPrefix(full, c.text); ok {
		return rest
	}
	return r.Text
}

func (s *session) prefill(r *request) error {
	rest := r.tokens[r.reused:]
	for at := r.reused; len(rest) > 0; {
		n := min(len(rest), s.job.MicroBatch)
		last := n == len(rest)
		s.batch.Clear()
		for i, t := range rest[:n] {
			if err := s.batch.Add(t, llama.Pos(at+i), []llama.SeqId{llama.SeqId(r.seq)}, last && i == n-1); err != nil {
				return err
			}
		}
		if err := s.evaluate(trace.Step{Prefill: true, Request: r.index, Context: uint32(at), Tokens: uint32(n), Seq: uint32(r.seq)}); err != nil {
			return err
		}
		s.kv[r.seq] = append(s.kv[r.seq], rest[:n]...)
		rest, at = rest[n:], at+n
		if s.stopped.Load() {
			return s.finish(r, "interrupted")
		}
	}
	r.out.FirstToken = now()
	return s.sample(r, -1)
}

// sample takes the next token of r from row of the last batch.
func (s *session) sample(r *request, row int32) error {
	r.next = llama.SamplerSample(r.sampler, s.ctx, row)
	at := now()
	if err := s.out.mark(observe.Mark{Kind: observe.MarkToken, Name: "", Index: uint64(len(r.made)), Seq: r.seq, Start: at, End: at, Value: uint64(r.index)}); err != nil {
		return err
	}
	if s.words && !s.job.IgnoreEnd && llama.VocabIsEOG(s.vocab, r.next) {
		return s.finish(r, "end_of_text")
	}
	r.made = append(r.made, r.next)
	if s.words {
		var buf [256]byte
		if n := llama.TokenToPiece(s.vocab, r.next, buf[:], 0, false); n > 0 {
			r.text.Write(buf[:n])
		}
	}
	switch {
	case len(r.made) >= r.limit && r.limit < r.Output:
		return s.finish(r, "context")
	case len(r.made) >= r.limit:
		return s.finish(r, "tokens")
	case s.stopped.Load():
		return s.finish(r, "interrupted")
	}
	return nil
}

// decode generates one token for each request.
func (s *session) decode(active []*request) error {
	s.batch.Clear()
	for _, r := range active {
		at := len(s.kv[r.seq])
		if err := s.batch.Add(r.next, llama.Pos(at), []llama.SeqId{llama.SeqId(r.seq)}, true); err != nil {
			return err
		}
	}
	first := active[0]
	err := s.evaluate(trace.Step{Request: first.index, Token: uint32(len(first.made)), Context: uint32(len(s.kv[first.seq])), Tokens: uint32(len(active)), Seq: uint32(first.seq)})
	if err != nil {
		return err
	}
	for i, r := range active {
		s.kv[r.seq] = append(s.kv[r.seq], r.next)
		if err := s.sample(r, int32(i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) evaluate(step trace.Step) error {
	step.Start = now()
	if err := s.out.step(step); err != nil {
		return err
	}
	if err := s.run(); err != nil {
		return err
	}
	if s.hook != nil {
		if err := s.hook.Err(); err != nil {
			return hookError(err)
		}
	}
	return nil
}

// run gives the batch to the engine.
func (s *session) run() error {
	code, err := llama.Decode(s.ctx, s.batch)
	if s.hook != nil {
		llama.Synchronize(s.ctx)
		s.hook.Flush()
	}
	switch {
	case err != nil:
		return run.Errorf(run.Engine, "llama_decode: %w", err)
	case code == 1:
		return run.Errorf(run.Engine, "llama_decode finds no room in the KV cache for %d tokens: raise the context length", s.batch.NTokens)
	case code != 0:
		return run.Errorf(run.Engine, "llama_decode ends with code %d; its own words are in raw/engine.log", code)
	}
	return nil
}

func (s *session) finish(r *request, why string) error {
	r.finished = true
	llama.SamplerFree(r.sampler)
	c := &s.conv[r.seq]
	c.tokens = append(append([]llama.Token{}, r.tokens...), r.made...)
	c.text += r.text.String()
	c.messages = append(c.messages, llama.NewChatMessage("assistant", r.text.String()))
	r.out.Text, r.out.Stopped = r.text.String(), why
	r.out.PromptTokens, r.out.ReusedTokens, r.out.OutputTokens = len(r.tokens), r.reused, len(r.made)
	r.out.End = now()
	if err := s.out.mark(observe.Mark{Kind: observe.MarkRequest, Index: uint64(r.index), Seq: r.seq, Start: r.out.Start, End: r.out.End, Value: uint64(len(r.made))}); err != nil {
		return err
	}
	return s.out.json(trace.KindOutput, r.out)
}

// remove frees the cells of a sequence from position on.
func (s *session) remove(seq int32, from int) error {
	op := trace.KVOp{Op: trace.KVRemove, Seq: seq, P0: int32(from), P1: -1, At: now()}
	ok, err := llama.MemorySeqRm(s.mem, llama.SeqId(seq), llama.Pos(from), -1)
	if err != nil {
		return run.Errorf(run.Engine, "KV cache: %w", err)
	}
	if !ok {
		// A cache that cannot go back part of the way.
		op.P0 = -1
		if _, err := llama.MemorySeqRm(s.mem, llama.SeqId(seq), -1, -1); err != nil {
			return run.Errorf(run.Engine, "KV cache: %w", err)
		}
		from = 0
	}
	s.kv[seq] = s.kv[seq][:from]
	return s.out.json(trace.KindKV, op)
}

// clear frees all cells.
func (s *session) clear() error {
	if err := llama.MemoryClear(s.mem, false); err != nil {
		return err
	}
	for i := range s.kv {
		s.kv[i] = nil
	}
	return s.out.json(trace.KindKV, trace.KVOp{Op: trace.KVClear, Seq: -1, P0: -1, P1: -1, At: now()})
}
