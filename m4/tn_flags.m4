# SPDX-License-Identifier: Apache-2.0

# TN_CHECK_FLAGS(VARIABLE, FLAGS): append to VARIABLE those of FLAGS that the C compiler accepts.
AC_DEFUN([TN_CHECK_FLAGS], [
  for tn_flag in m4_normalize([$2]); do
    AS_VAR_PUSHDEF([tn_cache], [tn_cv_flag_$tn_flag])
    AC_CACHE_CHECK([whether $CC takes $tn_flag], [tn_cache],
      [tn_save_CFLAGS=$CFLAGS
       # gcc reports an unknown -Wno-x only beside another warning, so test -Wx instead.
       AS_CASE([$tn_flag], [-Wno-*], [tn_try=-W`expr "x$tn_flag" : 'x-Wno-\(.*\)'`], [tn_try=$tn_flag])
       CFLAGS="$CFLAGS -Wall -Werror $tn_try"
       AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int tn_flag_probe(void); int tn_flag_probe(void) { return 0; }]])],
         [AS_VAR_SET([tn_cache], [yes])], [AS_VAR_SET([tn_cache], [no])])
       CFLAGS=$tn_save_CFLAGS])
    AS_VAR_IF([tn_cache], [yes], [AS_VAR_APPEND([$1], [" $tn_flag"])])
    AS_VAR_POPDEF([tn_cache])
  done
])

# TN_CHECK_LDFLAG(FLAG, IF-ACCEPTED): checks whether a program links with FLAG.
AC_DEFUN([TN_CHECK_LDFLAG], [
  AS_VAR_PUSHDEF([tn_cache], [tn_cv_ldflag_$1])
  AC_CACHE_CHECK([whether the linker takes $1], [tn_cache],
    [tn_save_LDFLAGS=$LDFLAGS; LDFLAGS="$LDFLAGS $1"
     AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AS_VAR_SET([tn_cache], [yes])], [AS_VAR_SET([tn_cache], [no])])
     LDFLAGS=$tn_save_LDFLAGS])
  AS_VAR_IF([tn_cache], [yes], [$2])
  AS_VAR_POPDEF([tn_cache])
])
