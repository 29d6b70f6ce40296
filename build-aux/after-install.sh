#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# after-install.sh LIBDIR BINDIR: the last message of make install if the dynamic linker does not find the installed library.
# libtool does not update the linker's cache, so after an installation in /usr/local nothing starts before ldconfig;
# elsewhere the command itself has a run path, but programs that link the library have none.
libdir=$1 tenon=$2/tenon
[ -x "$tenon" ] || exit 0
PATH=$PATH:/sbin:/usr/sbin
if said=$(unset LD_LIBRARY_PATH && LC_ALL=C "$tenon" --version 2>&1 >/dev/null); then
  known=$(ldconfig -p 2>/dev/null) || exit 0
  case $known in '' | *"=> $libdir/libtenon.so"*) exit 0 ;; esac
else
  case $said in *'error while loading shared libraries: libtenon'*) ;; *) exit 0 ;; esac # not for a command built for another machine
fi
cat <<END

The dynamic linker does not find libtenon in $libdir yet. Where its configuration names this folder, as it does
/usr/local/lib, its cache has to be made anew:
    sudo ldconfig
Elsewhere, for one shell or for one program:
    export LD_LIBRARY_PATH=$libdir
    cc program.c \$(pkg-config --cflags --libs tenon) -Wl,-rpath,$libdir
END
