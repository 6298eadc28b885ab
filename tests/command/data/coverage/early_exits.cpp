// Instances of templates that leave functions, loops and blocks early. A number behind `//=` is the number of times that
// the line ran, by arithmetic: `early<0>` is called 64 times, `early<1>` once, and so on.

static int values[1024];

template <int N> int early(int i) {
  if constexpr (N == 1) {
    return 1; //= 1
  }
  values[i] = 7;  //= 64
  values[i] += 1; //= 64
  return 0;       //= 64
}

template <int N> int without_braces(int i) {
  if constexpr (N == 1) return i && values[i];
  values[i] = 7; //= 67
  if constexpr (N == 2)
    return 3; //= 3
  else
    values[i] += 8; //= 64
  values[i] += 9; //= 64
  values[i] +=    //= 64
      10;         //= 64
  return 5;       //= 64
}

template <int N> int with_else(int i) {
  if constexpr (N == 1) {
    values[i] = 2; //= 1
  } else {
    return 4; //= 64
  }
  values[i] = 7;   //= 1
  values[i] += 10; //= 1
  return 5;        //= 1
}

template <int N> int nested(int i) {
  if constexpr (N > 0) {
    if constexpr (N == 2) {
      return 2; //= 3
    }
    values[i] = 3; //= 1
    values[i] = 4; //= 1
  }
  values[i] += 4; //= 65
  values[i] += 5; //= 65
  return 0;       //= 65
}

template <int N> int sometimes(int i) {
  if constexpr (N == 1) {
    if (i < 3) {
      return 1; //= 3
    }
    values[i] = 1; //= 7
  }
  values[i] += 2; //= 71
  values[i] += 3; //= 71
  return 0;       //= 71
}

int in_no_template(int i) {
  if constexpr (sizeof(int) == 4) {
    if (i < 3) {
      return 1; //= 3
    }
    values[i] = 1; //= 7
  }
  values[i] += 2; //= 7
  values[i] += 3; //= 7
  return 0;       //= 7
}

template <int N> int loop(int n) {
  int sum = 0; //= 3
  for (int i = 0; i < n; ++i) {
    if constexpr (N == 1) {
      continue; //= 20
    } else if constexpr (N == 2) {
      break; //= 1
    } else {
      sum += 1; //= 10
    }
    sum += i; //= 10
    sum += 1; //= 10
  }
  return sum;
}

template <int N> int folded(int n) {
  int sum = 0; //= 2
  for (int i = 0; i < n; ++i) {
    if (N == 1) {
      break; //= 1
    }
    sum += i; //= 10
    sum += 1; //= 10
  }
  return sum; //= 2
}

template <int N> int jump(int i) {
  if constexpr (N == 1) {
    goto end; //= 1
  }
  values[i] = 7;  //= 64
  values[i] += 1; //= 64
end:
  values[i] += 2; //= 65
  return 0;       //= 65
}

template <int N> int choose(int i) {
  if constexpr (N == 1) {
    switch (i) {
    case 1:
      return 1; //= 1
    default:
      values[i] = 1; //= 9
    }
    values[i] += 1; //= 9
  }
  values[i] += 2; //= 73
  values[i] += 3; //= 73
  return 0;       //= 73
}

template <int N> int with_lambda(int i) {
  if constexpr (N == 1) {
    return 1; //= 1
  }
  auto add = [](int j) {
    values[j] += 1; //= 128
    return j;       //= 128
  };
  add(i);           //= 64
  return add(i);    //= 64
}

#define LEAVE_IF_SMALL(i)                                                                                              \
  if ((i) < 3)                                                                                                         \
  return 1
template <int N> int with_macro(int i) {
  if constexpr (N == 1) {
    LEAVE_IF_SMALL(i); //= 10
    values[i] = 1;     //= 7
  }
  values[i] += 2; //= 71
  values[i] += 3; //= 71
  return 0;       //= 71
}

template <int N> int never(int i) {
  if constexpr (N == 1) {
    return 1; //= 64
  } else {
    values[i] = 1; //= 0
  }
  values[i] += 2; //= 0
  values[i] += 3; //= 0
  return 0;       //= 0
}

template <int N> int chain(int i) {
  if constexpr (N == 1) {
    values[i] = 1; //= 64
  } else if constexpr (N == 2) {
    values[i] = 2; //= 3
  } else {
    return 9; //= 1
  }
  values[i] += 1; //= 67
  values[i] += 2; //= 67
  return 0;       //= 67
}

int main(int argc, char **) {
  for (int i = 0; i < 64; ++i) {
    early<0>(i);
    without_braces<0>(i);
    with_else<0>(i);
    nested<0>(i);
    sometimes<0>(i);
    jump<0>(i);
    choose<0>(i);
    with_lambda<0>(i);
    with_macro<0>(i);
    never<1>(i);
    chain<1>(i);
  }
  early<1>(1);
  without_braces<1>(1);
  with_else<1>(1);
  nested<1>(1);
  jump<1>(1);
  with_lambda<1>(1);
  chain<0>(1);
  for (int i = 0; i < 3; ++i) {
    without_braces<2>(i);
    nested<2>(i);
    chain<2>(i);
  }
  for (int i = 0; i < 10; ++i) {
    sometimes<1>(i);
    in_no_template(i);
    choose<1>(i);
    with_macro<1>(i);
  }
  loop<0>(10);
  loop<1>(20);
  loop<2>(30);
  folded<0>(10);
  folded<1>(20);
  if (argc > 9)
    never<0>(1);
  return 0;
}
