#include "go_asm.h"
#include "textflag.h"

// enter is called as ggml_backend_sched_graph_compute_async(sched DI, graph SI) by
// libllama, on the C stack, in C's calling convention (System V): it must preserve BX,
// BP and R12 to R15. Everything that it calls is C.
TEXT enter<>(SB), NOSPLIT|NOFRAME, $0-0
	LEAQ ·route(SB), R11
	CMPQ shortcut_graph(R11), SI
	JNE  slow
	CMPQ shortcut_left(R11), $0
	JEQ  slow
	MOVQ shortcut_at(R11), R8
	MOVQ R8, R9
	ADDQ shortcut_entry(R11), R9
	CMPQ R9, shortcut_end(R11)
	JHI  slow

	// Three words and the return address: the stack is aligned to 16 again.
	SUBQ $24, SP
	MOVQ BX, 0(SP)
	MOVQ R12, 8(SP)
	MOVQ R13, 16(SP)
	MOVQ R8, BX
	MOVQ DI, R12
	MOVQ SI, R13

	MOVL $1, DI // CLOCK_MONOTONIC
	MOVQ BX, SI
	MOVQ shortcut_clock(R11), AX
	CALL AX

	// The contents of the index tensors: once the graph runs, their memory may be
	// taken for something else.
	LEAQ ·route(SB), R11
	MOVQ shortcut_copies(R11), R9
	MOVQ shortcut_count(R11), R10
	LEAQ 48(BX), DI

next:
	TESTQ R10, R10
	JEQ   copied
	MOVQ  0(R9), SI
	MOVQ  8(R9), CX
	REP
	MOVSB
	ADDQ  $16, R9
	DECQ  R10
	JMP   next

copied:
	MOVL $1, DI
	LEAQ 16(BX), SI
	MOVQ shortcut_clock(R11), AX
	CALL AX

	MOVQ R12, DI
	MOVQ R13, SI
	LEAQ ·route(SB), R11
	MOVQ shortcut_orig(R11), AX
	CALL AX
	MOVQ AX, R12

	MOVL $1, DI
	LEAQ 32(BX), SI
	LEAQ ·route(SB), R11
	MOVQ shortcut_clock(R11), AX
	CALL AX

	LEAQ ·route(SB), R11
	ADDQ shortcut_entry(R11), BX
	MOVQ BX, shortcut_at(R11)
	DECQ shortcut_left(R11)
	MOVQ R12, AX
	MOVQ 0(SP), BX
	MOVQ 8(SP), R12
	MOVQ 16(SP), R13
	ADDQ $24, SP
	RET

slow:
	MOVQ shortcut_slow(R11), AX
	JMP  AX

// func shortcutEntry() uintptr
TEXT ·shortcutEntry(SB), NOSPLIT, $0-8
	LEAQ enter<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
