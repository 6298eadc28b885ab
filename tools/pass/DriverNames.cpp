//===- DriverNames.cpp - Counters that the CUDA driver knows --------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "DriverNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace rocov {

/// The variable of rocov's device header that asks for LLVM's own counters.
constexpr StringLiteral Mark = "__rocov_llvm_counters";

/// The variables that change while kernels run: counters, uniform counters,
/// bitmaps, and copies. LLVM's InstrProfData.inc has the first three.
constexpr StringLiteral Counted[] = {"__profc_", "__llvm_prf_unifcnt_",
                                     "__profbm_", "__rocov_copies_area"};
constexpr StringLiteral Record = "__profd_";
/// The names of the unit's functions.
constexpr StringLiteral Names = "__llvm_prf_nm";

/// LLVM's constructor that registers all records, the function that it calls,
/// and those that this one calls (LLVM's InstrProfiling.cpp). rocov's header
/// may have a function of the second name, and LLVM's then gets a number.
constexpr StringLiteral Constructor = "__llvm_profile_init";
constexpr StringLiteral Registration = "__llvm_profile_register_";

std::string unitName(const Module &M) {
  // Two units may have one file name, but not one set of counters.
  std::string All = M.getModuleIdentifier();
  for (const GlobalVariable &Variable : M.globals())
    if (!Variable.isDeclaration())
      All += Variable.getName();
  return utohexstr(xxh3_64bits(All));
}

bool keepsCounters(const Module &M) { return M.getNamedGlobal(Mark); }

/// \p Name with an underscore for each letter that PTX does not allow in names
/// (PTX ISA, "Identifiers").
static std::string allowed(StringRef Name) {
  std::string All = Name.str();
  for (char &Letter : All)
    if (!isAlnum(Letter) && Letter != '_' && Letter != '$')
      Letter = '_';
  return All;
}

/// The prefix of \p Name that is one of \p Prefixes, or nothing.
static StringRef prefixOf(StringRef Name, ArrayRef<StringLiteral> Prefixes) {
  for (StringRef Prefix : Prefixes)
    if (Name.starts_with(Prefix))
      return Prefix;
  return {};
}

static void nameVariable(GlobalVariable &Variable, StringRef Unit) {
  StringRef Name = Variable.getName();
  if (Name == Names && Variable.hasExternalLinkage()) {
    Variable.setName(Twine(Names) + "_" + Unit);
    return;
  }
  StringRef Prefix = prefixOf(Name, Counted);
  bool Changes = !Prefix.empty();
  if (!Changes)
    Prefix = prefixOf(Name, Record);
  if (Prefix.empty() || Variable.isDeclaration())
    return;
  const Function *F =
      Variable.getParent()->getFunction(Name.drop_front(Prefix.size()));
  bool IsShared = F && F->isDiscardableIfUnused() && !F->hasLocalLinkage();
  if (IsShared &&
      (Variable.hasLocalLinkage() || Variable.hasExternalLinkage()))
    Variable.setLinkage(GlobalValue::WeakAnyLinkage);
  std::string New = allowed(Name);
  bool BecomesGlobal = Variable.hasLocalLinkage() && Changes;
  // Another unit may have a variable of this name, too.
  if (New != Name || BecomesGlobal)
    New += "_" + Unit.str();
  if (New != Name)
    Variable.setName(New);
  if (BecomesGlobal)
    Variable.setLinkage(GlobalValue::ExternalLinkage);
}

static void dropRegistration(Module &M) {
  Function *Init = M.getFunction(Constructor);
  GlobalVariable *All = M.getNamedGlobal("llvm.global_ctors");
  if (!Init || Init->isDeclaration() || !All)
    return;
  auto *List = dyn_cast<ConstantArray>(All->getInitializer());
  if (!List)
    return;
  SmallVector<Constant *, 4> Kept;
  for (const Use &Entry : List->operands()) {
    auto *Fields = cast<Constant>(Entry);
    if (cast<Constant>(Fields->getOperand(1))->stripPointerCasts() != Init)
      Kept.push_back(Fields);
  }
  if (!Kept.empty()) {
    ArrayType *Type =
        ArrayType::get(List->getType()->getElementType(), Kept.size());
    auto *Now = new GlobalVariable(M, Type, All->isConstant(),
                                   All->getLinkage(),
                                   ConstantArray::get(Type, Kept), "", All);
    Now->takeName(All);
  }
  All->eraseFromParent();
  auto IsOfLlvm = [](const Function &F) {
    bool IsCalled = F.isDeclaration() || F.hasLocalLinkage();
    return IsCalled && F.getName().starts_with(Registration);
  };
  Init->deleteBody();
  for (Function &F : M)
    if (IsOfLlvm(F) && !F.isDeclaration())
      F.deleteBody();
  for (Function &F : make_early_inc_range(M))
    if ((IsOfLlvm(F) || &F == Init) && F.use_empty())
      F.eraseFromParent();
}

void nameForDriver(Module &M) {
  if (!Triple(M.getTargetTriple()).isNVPTX())
    return;
  std::string Unit = unitName(M);
  for (GlobalVariable &Variable : M.globals())
    nameVariable(Variable, Unit);
  dropRegistration(M);
}

} // namespace rocov
