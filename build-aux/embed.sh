#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh FILE...: writes C code with the files' bytes, each under its name without folder and suffix:
#   const struct embedded { const char *name; const char *text; size_t size; } NAME in a table that ends with a NULL.
set -eu
export LC_ALL=C
cat <<'C'
/* Made by build-aux/embed.sh. */
#include "device/embedded.h"

C
for file; do
  name=$(basename "$file" .cl)
  echo "static const char text_$name[] = {"
  od -An -v -tu1 "$file" | sed 's/  */,/g; s/^,//; s/$/,/'
  echo "0 };"
done
echo 'const gpu_embedded gpu_embedded_files[] = {'
for file; do
  name=$(basename "$file" .cl)
  echo "  { \"$name\", text_$name, sizeof text_$name - 1 },"
done
echo '  { 0, 0, 0 }'
echo '};'
