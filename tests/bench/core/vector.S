# a0: elements, a1: x, a2: y, fa0: the factor, a3: how often. Ends in ebreak. saxpy at the start of the image, what
# only multiplies and adds in registers 256 bytes behind it.
    .globl _start
    .section .text.start
_start:
1:  mv      t2, a0
    mv      t3, a1
    mv      t4, a2
2:  vsetvli t0, t2, e32, m8, ta, ma
    vle32.v v0, (t3)
    vle32.v v8, (t4)
    vfmacc.vf v8, fa0, v0
    vse32.v v8, (t4)
    slli    t1, t0, 2
    sub     t2, t2, t0
    add     t3, t3, t1
    add     t4, t4, t1
    bnez    t2, 2b
    addi    a3, a3, -1
    bnez    a3, 1b
    ebreak

    .balign 256
    vsetvli t0, x0, e32, m4, ta, ma
    vfmv.v.f v0, fa0
    vfmv.v.f v4, fa0
3:  vfmacc.vf v8, fa0, v0
    vfmacc.vv v12, v0, v4
    vfmacc.vf v16, fa0, v4
    vfmacc.vf v20, fa0, v0
    addi    a3, a3, -1
    bnez    a3, 3b
    ebreak
