#!/bin/sh
# Installs the files beside this script, or removes them again.
set -eu

usage() {
  cat <<'EOF'
Usage: ./install.sh [--prefix PREFIX] [--uninstall]

Copies bin, lib, include, libexec and share into PREFIX: /usr/local for root, else ~/.local. If another version is
there, replaces it. The list of files is kept in PREFIX/share/rocov/installed-files.

  --uninstall  remove the files of that list, and directories of it that are empty then
EOF
}

here=$(cd "$(dirname "$0")" && pwd)
prefix="" uninstall=false
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --prefix)
      [ $# -gt 1 ] || { usage >&2; exit 2; }
      prefix=$2
      shift 2
      ;;
    --prefix=*) prefix=${1#--prefix=}; shift ;;
    --uninstall) uninstall=true; shift ;;
    *) usage >&2; exit 2 ;;
  esac
done

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

if [ -z "$prefix" ]; then
  if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
fi
list=$prefix/share/rocov/installed-files

# Removes the files of the list $1, from the last to the first, so that a directory is empty when its turn comes.
remove() {
  LC_ALL=C sort -r "$1" | while IFS= read -r path; do
    case "$path" in
      "" | /* | *..*) fail "$1 names $path, which is no path below $prefix" ;;
      */) rmdir "$prefix/$path" 2>/dev/null || true ;;
      *) rm -f "$prefix/$path" ;;
    esac
  done
}

if $uninstall; then
  [ -f "$list" ] || fail "no $list: rocov is not installed in $prefix; name its prefix with --prefix"
  copy=$(mktemp)
  cp "$list" "$copy"
  remove "$copy"
  rm -f "$copy"
  rmdir "$prefix" 2>/dev/null || true
  echo "rocov is removed from $prefix"
  exit 0
fi

mkdir -p "$prefix" || fail "cannot make $prefix: name another directory with --prefix"
[ -w "$prefix" ] || fail "cannot write to $prefix: name another directory with --prefix"
# A file is written under a name of its own and renamed, because a program may have the old one loaded.
(
  cd "$here"
  for folder in bin lib include libexec share; do
    [ ! -d "$folder" ] || find "$folder"
  done
) | LC_ALL=C sort | while IFS= read -r path; do
  if [ -d "$here/$path" ] && [ ! -L "$here/$path" ]; then
    [ -d "$prefix/$path" ] || { mkdir "$prefix/$path"; echo "$path/"; }
  else
    cp -P -p "$here/$path" "$prefix/$path.new"
    mv -f "$prefix/$path.new" "$prefix/$path"
    echo "$path"
  fi
done >"$prefix/.rocov-installed-files"
[ -d "$prefix/share/rocov" ] || fail "this folder has no share/rocov: unpack the whole archive"
echo share/rocov/installed-files >>"$prefix/.rocov-installed-files"
# Then remove what only the version before had.
if [ -f "$list" ]; then
  old=$(mktemp)
  # Directories that an earlier version has made, and that this one has too, are still its own.
  grep '/$' "$list" | while IFS= read -r path; do
    [ ! -d "$here/$path" ] || echo "$path"
  done >>"$prefix/.rocov-installed-files"
  grep -v -x -F -f "$prefix/.rocov-installed-files" "$list" >"$old" || true
  remove "$old"
  rm -f "$old"
fi
mv -f "$prefix/.rocov-installed-files" "$list"
echo "rocov is installed in $prefix"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) echo "Add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
