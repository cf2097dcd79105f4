package experiment

// DefaultPrompts are the prompts of an experiment that names none: short
// questions, one long text to be read and one to be written, so that the KV cache
// grows, and a follow-up that finds its conversation in the cache.
func DefaultPrompts() []Prompt {
	return []Prompt{
		{Text: "Why is the sky blue? Answer in two sentences.", Category: "short"},
		{Text: "Write a long essay about how libraries kept and lost the knowledge of the ancient world. Begin with clay tablets, go on to scrolls and the great " +
			"collections around the Mediterranean, then to monasteries, paper and the printing press. For each, say who could read, what was copied, what was " +
			"thrown away, how long a copy lasted, and what it cost to keep it. Explain why some texts survive in a single copy while others exist in thousands, " +
			"and what that says about what people thought worth keeping. Close with the memory of machines: what is kept for a moment, what for years, and who decides.", Category: "long"},
		{Text: "Now say the same in three sentences for a child.", Category: "follow_up", Keep: true},
		{Text: "List four rivers of Europe.", Category: "short"},
	}
}
