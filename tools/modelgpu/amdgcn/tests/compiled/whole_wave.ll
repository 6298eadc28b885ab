; The sum over the odd values of a wave, by all of its lanes: those of even values take part with 0. Odd
; lanes get the sum, even lanes 0. Clang has no builtin functions for this.
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @odd_sums(ptr addrspace(1) %in, ptr addrspace(1) %out) #0 {
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %local = call i32 @llvm.amdgcn.workitem.id.x()
  %first = mul i32 %group, 128
  %item = add i32 %first, %local
  %index = zext i32 %item to i64
  %from = getelementptr i64, ptr addrspace(1) %in, i64 %index
  %to = getelementptr i64, ptr addrspace(1) %out, i64 %index
  %long = load i64, ptr addrspace(1) %from
  %value = trunc i64 %long to i32
  %odd = trunc i32 %value to i1
  br i1 %odd, label %then, label %done

then:
  %all = call i32 @llvm.amdgcn.set.inactive.i32(i32 %value, i32 0)
  %from1 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %all, i32 273, i32 15, i32 15, i1 false)
  %sum1 = add i32 %all, %from1
  %from2 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %sum1, i32 274, i32 15, i32 15, i1 false)
  %sum2 = add i32 %sum1, %from2
  %from4 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %sum2, i32 276, i32 15, i32 15, i1 false)
  %sum4 = add i32 %sum2, %from4
  %from8 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %sum4, i32 280, i32 15, i32 15, i1 false)
  %sum8 = add i32 %sum4, %from8
  %from15 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %sum8, i32 322, i32 10, i32 15, i1 false)
  %sum15 = add i32 %sum8, %from15
  %from31 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %sum15, i32 323, i32 12, i32 15, i1 false)
  %sum31 = add i32 %sum15, %from31
  %last = call i32 @llvm.amdgcn.readlane.i32(i32 %sum31, i32 63)
  %total = call i32 @llvm.amdgcn.strict.wwm.i32(i32 %last)
  br label %done

done:
  %sum = phi i32 [ 0, %0 ], [ %total, %then ]
  %result = zext i32 %sum to i64
  store i64 %result, ptr addrspace(1) %to
  ret void
}

declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.set.inactive.i32(i32, i32)
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)
declare i32 @llvm.amdgcn.readlane.i32(i32, i32)
declare i32 @llvm.amdgcn.strict.wwm.i32(i32)

attributes #0 = { convergent nounwind "amdgpu-flat-work-group-size"="1,1024" "uniform-work-group-size"="true" }
