#include "textflag.h"

// func Pause(times uint32)
TEXT ·Pause(SB), NOSPLIT, $0-4
	MOVL	times+0(FP), CX
	TESTL	CX, CX
	JZ	done
again:
	PAUSE
	SUBL	$1, CX
	JNZ	again
done:
	RET
