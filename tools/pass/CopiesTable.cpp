//===- CopiesTable.cpp - The copies of a unit's counters ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "CopiesTable.h"

#include "DriverNames.h"
#include "GpuTarget.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace rocov {

/// As many as the largest GPUs have units, about.
constexpr uint64_t MaxCopies = 256;
/// The most bytes that the copies of one translation unit take, unless a single
/// copy takes more.
constexpr uint64_t MaxAreaBytes = 16 << 20;
/// "rocovcps", little endian.
constexpr uint64_t Magic = 0x737063766f636f72;
constexpr uint32_t Version = 1;

CopiesTable::CopiesTable(const GpuTarget &Target)
    : Alignment(Target.copyAlignment()) {}

uint64_t CopiesTable::add(ArrayRef<Counter> Counters) {
  uint64_t Offset = Words * 8;
  for (const Counter &Word : Counters) {
    bool Follows = Words * 8 != Offset && !Ranges.empty() &&
                   Ranges.back().Array == Word.Array &&
                   Ranges.back().First + Ranges.back().Count == Word.Index;
    if (Follows)
      ++Ranges.back().Count;
    else
      Ranges.push_back({Word.Array, Word.Index, 1});
    ++Words;
  }
  return Offset;
}

uint64_t CopiesTable::stride() const { return alignTo(Words * 8, Alignment); }

uint64_t CopiesTable::copies() const {
  uint64_t Copies = MaxCopies;
  while (Copies > 1 && Copies * stride() > MaxAreaBytes)
    Copies /= 2;
  return Copies;
}

/// The address \p Bytes bytes after the start of \p Variable.
static Constant *addressIn(GlobalVariable *Variable, uint64_t Bytes) {
  LLVMContext &Context = Variable->getContext();
  return ConstantExpr::getGetElementPtr(
      Type::getInt8Ty(Context), Variable,
      ConstantInt::get(Type::getInt64Ty(Context), Bytes));
}

/// Makes the symbol by which the loader finds the section with all tables.
static void emitBounds(Module &M) {
  LLVMContext &Context = M.getContext();
  auto *Address = PointerType::get(Context, GpuTarget::Global);
  auto Limit = [&](StringRef Name) {
    auto *Symbol = new GlobalVariable(
        M, Type::getInt8Ty(Context), /*isConstant=*/false,
        GlobalValue::ExternalLinkage, nullptr, Name, nullptr,
        GlobalValue::NotThreadLocal, GpuTarget::Global);
    Symbol->setVisibility(GlobalValue::HiddenVisibility);
    return Symbol;
  };
  Constant *Both[] = {Limit("__start___rocov_copies"),
                      Limit("__stop___rocov_copies")};
  auto *Pair = ArrayType::get(Address, 2);
  auto *Bounds = new GlobalVariable(
      M, Pair, /*isConstant=*/false, GlobalValue::WeakAnyLinkage,
      ConstantArray::get(Pair, Both), "__rocov_copies_bounds", nullptr,
      GlobalValue::NotThreadLocal, GpuTarget::Global);
  Bounds->setVisibility(GlobalValue::ProtectedVisibility);
  Bounds->setAlignment(Align(8));
  appendToUsed(M, {Bounds});
}

void CopiesTable::emit(Module &M) {
  LLVMContext &Context = M.getContext();
  uint64_t AreaBytes = copies() * stride();
  auto *Bytes = ArrayType::get(Type::getInt8Ty(Context), AreaBytes);
  Area = new GlobalVariable(M, Bytes, /*isConstant=*/false,
                            GlobalValue::InternalLinkage,
                            ConstantAggregateZero::get(Bytes),
                            "__rocov_copies_area", nullptr,
                            GlobalValue::NotThreadLocal, GpuTarget::Global);
  Area->setAlignment(Align(Alignment));

  auto *Int32 = Type::getInt32Ty(Context);
  uint32_t TableBytes = 32 + 16 * Ranges.size();
  SmallVector<Constant *, 64> Fields = {
      ConstantInt::get(Type::getInt64Ty(Context), Magic),
      ConstantInt::get(Int32, Version), ConstantInt::get(Int32, TableBytes),
      Area, addressIn(Area, AreaBytes)};
  for (const Range &Range : Ranges) {
    Fields.push_back(addressIn(Range.Array, Range.First * 8));
    Fields.push_back(addressIn(Range.Array, (Range.First + Range.Count) * 8));
  }
  Constant *Contents = ConstantStruct::getAnon(Fields);
  auto *Table = new GlobalVariable(
      M, Contents->getType(), /*isConstant=*/false,
      GlobalValue::InternalLinkage, Contents, "__rocov_copies_table", nullptr,
      GlobalValue::NotThreadLocal, GpuTarget::Global);
  Table->setAlignment(Align(8));
  if (Triple(M.getTargetTriple()).isAMDGCN()) {
    Table->setSection("__rocov_copies");
    emitBounds(M);
  } else {
    // PTX has no sections, and no weak variables that the linker defines.
    Table->setLinkage(GlobalValue::ExternalLinkage);
    Table->setName("__rocov_copies_table_" + unitName(M));
  }
  appendToCompilerUsed(M, {Table});
}

} // namespace rocov
