// A kernel that lives in a header: its coverage mapping names this file.
template <class T> __attribute__((global)) void from_header(T *values, int count) {
  __attribute__((shared)) T tile[96];
  int index = __builtin_amdgcn_workitem_id_x();
  tile[index % 96] = index < count ? values[index] : T(0);
  __builtin_amdgcn_s_barrier();
  values[index] = tile[95 - index % 96];
}

// A kernel with a macro as its body: its place is the use of the macro.
#define IN_A_MACRO(name)                                                                           \
  __attribute__((global)) void name(int *values) { *values = *values ? 4 : 5; }
