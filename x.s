s_getpc_b64 s[2:3]
s_setpc_b64 s[2:3]
s_swappc_b64 s[2:3], s[4:5]
s_sext_i32_i16 s2,s3
s_mov_b32 s2,s3
s_endpgm
s_branch 4
s_cbranch_execnz 3
s_setreg_imm32_b32 hwreg(HW_REG_MODE), 5
