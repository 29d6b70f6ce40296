# SPDX-License-Identifier: Apache-2.0
# Plugins. A runtime is in plugins/NAME/ and has a list plugins/NAME/NAME.mk, which adds it to TN_PLUGINS, names its
# sources and sets its flags:
#
#   TN_PLUGINS += plugins/NAME.la
#   plugins_NAME_la_SOURCES = plugins/NAME/plugin.c
#   plugins_NAME_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=NAME
#   plugins_NAME_la_LDFLAGS = $(TN_PLUGIN_LINK)
#
# To add one, add that folder and one include line at the end of this file. A plugin includes <tenon/...> only and is not
# linked with libtenon: it calls functions through the host table.
#
# configure --enable-preloaded=NAME builds it a second time, as an archive that is linked into the library:
#
#   EXTRA_LTLIBRARIES += plugins/preloaded/NAME.la
#   plugins_preloaded_NAME_la_SOURCES = $(plugins_NAME_la_SOURCES)
#   plugins_preloaded_NAME_la_CPPFLAGS = $(plugins_NAME_la_CPPFLAGS)
#   plugins_preloaded_NAME_la_LDFLAGS = $(TN_PRELOAD_LINK)
TN_PLUGINS =
TN_PLUGIN_CPPFLAGS = -I$(top_builddir)/include -I$(top_srcdir)/include
TN_PLUGIN_LINK = $(AM_LDFLAGS) -module -avoid-version -rpath $(plugindir) \
  -export-symbols-regex '_LTX_tn_plugin_query$$' $(TN_PLUGIN_LDFLAGS)
TN_PRELOAD_LINK = $(AM_LDFLAGS) -module

noinst_LTLIBRARIES += $(TN_PLUGINS) $(TN_PRELOADED_LIBS)

# The build folder of the modules; libtenon finds them there until it is installed (core/registry/uninstalled.c).
TN_BUILT_PLUGIN_PATH = $(abs_top_builddir)/plugins/$(TN_OBJDIR)

# Installed without libtool: a program may have the old file mapped, so the new one is written beside it and renamed (P-99).
# No .la files are installed, as they are never read (P-08), and no preloaded plugins, as the library's would shadow them.
install-exec-local: $(TN_PLUGINS)
	@$(MKDIR_P) '$(DESTDIR)$(plugindir)'
	@for la in $(TN_PLUGINS); do \
	  so=`basename $$la .la`.so; \
	  case ' $(TN_PRELOADED_PLUGINS) ' in *" $$la "*) continue ;; esac; \
	  test -f plugins/$(TN_OBJDIR)/$$so || continue; \
	  tmp='$(DESTDIR)$(plugindir)'/.$$so.new; \
	  echo " $(INSTALL_PROGRAM) plugins/$(TN_OBJDIR)/$$so $(DESTDIR)$(plugindir)/$$so"; \
	  $(INSTALL_PROGRAM) plugins/$(TN_OBJDIR)/$$so "$$tmp" && mv -f "$$tmp" '$(DESTDIR)$(plugindir)'/$$so || exit 1; \
	done

uninstall-local:
	@for la in $(TN_PLUGINS); do rm -f '$(DESTDIR)$(plugindir)'/`basename $$la .la`.so; done

uninstall-hook:
	-@rmdir '$(DESTDIR)$(plugindir)' '$(DESTDIR)$(libdir)/tenon' '$(DESTDIR)$(tenonincludedir)' 2>/dev/null || :

# One include line for each plugin.
include plugins/direct/direct.mk
include plugins/gpu/gpu.mk
include plugins/onednn/onednn.mk
include plugins/threaded/threaded.mk
