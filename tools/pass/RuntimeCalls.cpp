//===- RuntimeCalls.cpp - How clang 23 and later count --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"

#include "CounterUpdates.h"
#include "GpuTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace rocov {

/// The function of the device runtime that adds to counters.
constexpr StringLiteral Runtime = "__llvm_profile_instrument_gpu";

/// The start of the names of uniform counters (LLVM's InstrProfiling.cpp).
constexpr StringLiteral UniformPrefix = "__llvm_prf_unifcnt_";

/// The variable that only units with a coverage mapping have (LLVM's InstrProf.h).
constexpr StringLiteral Mapping = "__llvm_coverage_mapping";

/// The variable of units with rocov's device header. The header also defines the
/// bounds of a section that no unit has: clang's table of bounds refers to them.
constexpr StringLiteral Version = "__rocov_raw_version";

/// The variable of rocov's device header that asks for uniform counters.
constexpr StringLiteral Uniformity = "__rocov_uniformity";

/// The call of the device runtime that \p It is. Null if it is none.
static CallInst *runtimeCall(User *It) {
  auto *Call = dyn_cast<CallInst>(It);
  const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  bool Is = Callee && Callee->getName() == Runtime && Call->arg_size() == 3;
  return Is ? Call : nullptr;
}

/// Returns whether \p It is the address of one of \p Variables, or computed from one.
static bool refersTo(const Constant *It,
                     const SmallSetVector<GlobalVariable *, 16> &Variables) {
  if (auto *Variable = dyn_cast<GlobalVariable>(It))
    return Variables.contains(const_cast<GlobalVariable *>(Variable));
  return !isa<GlobalValue>(It) && any_of(It->operands(), [&](const Use &Operand) {
    return refersTo(cast<Constant>(Operand), Variables);
  });
}

/// Initialises the fields of a data record for which \p Choose has a value.
static void
setFields(GlobalVariable &Record,
          function_ref<Constant *(unsigned, Constant *)> Choose) {
  auto *Type = cast<StructType>(Record.getValueType());
  SmallVector<Constant *, 12> Fields;
  for (unsigned I = 0; I != Type->getNumElements(); ++I) {
    Constant *Old = Record.getInitializer()->getAggregateElement(I);
    Constant *New = Choose(I, Old);
    Fields.push_back(New ? New : Old);
  }
  Record.setInitializer(ConstantStruct::get(Type, Fields));
}

bool dropUniformCounters(Module &M) {
  // The data records of clang's PTX have no place for them.
  bool HasPlace = !Triple(M.getTargetTriple()).isNVPTX();
  if (HasPlace && (!M.getNamedGlobal(Mapping) || !M.getNamedGlobal(Version) ||
                   M.getNamedGlobal(Uniformity)))
    return false;
  SmallSetVector<GlobalVariable *, 16> Uniform;
  for (GlobalVariable &Variable : M.globals())
    if (Variable.getName().starts_with(UniformPrefix))
      Uniform.insert(&Variable);
  if (Uniform.empty())
    return false;
  if (Function *Callee = M.getFunction(Runtime))
    for (User *It : Callee->users())
      if (CallInst *Call = runtimeCall(It)) {
        Type *Address = Call->getArgOperand(1)->getType();
        Call->setArgOperand(1, Constant::getNullValue(Address));
      }
  // Of variables with fields, only data records refer to them.
  for (GlobalVariable &Record : M.globals())
    if (isa<StructType>(Record.getValueType()) && Record.hasInitializer() &&
        refersTo(Record.getInitializer(), Uniform))
      setFields(Record, [&](unsigned, Constant *Field) -> Constant * {
        return refersTo(Field, Uniform) ? Constant::getNullValue(Field->getType())
                                        : nullptr;
      });
  removeFromUsedLists(M, [&](Constant *It) { return refersTo(It, Uniform); });
  for (GlobalVariable *Variable : Uniform) {
    Variable->removeDeadConstantUsers();
    if (Variable->use_empty())
      Variable->eraseFromParent();
  }
  return true;
}

bool markRuntimeCalls(Function &F, const GpuTarget &Target) {
  const DataLayout &DL = F.getParent()->getDataLayout();
  SmallVector<CallInst *, 16> Calls;
  for (Instruction &I : instructions(F))
    if (CallInst *Call = runtimeCall(&I);
        Call && counterAt(Call->getArgOperand(0), DL))
      Calls.push_back(Call);
  for (CallInst *Call : Calls) {
    IRBuilder<> B(Call);
    Value *Step = Call->getArgOperand(2);
    markUpdate(B, *counterAt(Call->getArgOperand(0), DL), Step);
    // Null if nothing counts such runs.
    if (auto Uniform = counterAt(Call->getArgOperand(1), DL)) {
      Value *IsUniform = Target.lanesMeet() ? markFull(B) : Target.isFull(B);
      auto *Constant = dyn_cast<ConstantInt>(Step);
      if (Constant && Constant->isOne())
        Step = IsUniform;
      else
        Step = B.CreateSelect(IsUniform, Step, B.getInt64(0));
      markUpdate(B, *Uniform, Step);
    }
    Call->eraseFromParent();
  }
  return !Calls.empty();
}

bool testFullMarks(Function &F, const GpuTarget &Target) {
  auto Marks = findFullMarks(F);
  for (CallInst *Mark : Marks) {
    IRBuilder<> B(Mark);
    Mark->replaceAllUsesWith(Target.isFull(B));
    Mark->eraseFromParent();
  }
  return !Marks.empty();
}

/// Sets the field of \p Record that \p Store writes.
static bool initialise(StoreInst &Store, const DataLayout &DL) {
  auto *Number = dyn_cast<ConstantInt>(Store.getValueOperand());
  if (!Number || !Number->getType()->isIntegerTy(16))
    return false;
  Value *Address = Store.getPointerOperand();
  APInt Offset(DL.getIndexTypeSizeInBits(Address->getType()), 0);
  auto *Record =
      dyn_cast<GlobalVariable>(Address->stripAndAccumulateConstantOffsets(
          DL, Offset, /*AllowNonInbounds=*/true));
  if (!Record || Record->getSection() != "__llvm_prf_data" ||
      !Record->hasInitializer())
    return false;
  auto *Type = dyn_cast<StructType>(Record->getValueType());
  if (!Type)
    return false;
  const StructLayout *Layout = DL.getStructLayout(Type);
  unsigned Field = Layout->getElementContainingOffset(Offset.getZExtValue());
  if (Layout->getElementOffset(Field) != Offset.getZExtValue() ||
      Type->getElementType(Field) != Number->getType())
    return false;
  setFields(*Record, [&](unsigned Other, Constant *) {
    return Other == Field ? Number : nullptr;
  });
  return true;
}

bool settleWaveSize(Function &F) {
  const DataLayout &DL = F.getParent()->getDataLayout();
  bool Any = false;
  for (Instruction &I : make_early_inc_range(instructions(F)))
    if (auto *Store = dyn_cast<StoreInst>(&I); Store && initialise(*Store, DL)) {
      Store->eraseFromParent();
      Any = true;
    }
  return Any;
}

} // namespace rocov
