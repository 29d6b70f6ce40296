/* SPDX-License-Identifier: Apache-2.0 */
/* Advice about a plugin, selected by the library's message. Each key is part of a message in core/registry or of the
 * dynamic linker; tests/tools/runtimes.sh checks this. The first match is used. */
#include <string.h>

#include <tools/runtimes/runtimes.h>

static const struct {
  const char *part, *advice;
} advices[] = {
  { "it is disabled: ", "It was disabled deliberately. To enable it, remove it from the named setting." },
  { ".conf', line ",
    "Correct this line of the plugin's .conf file: enabled=yes or no, rank=0 to 1000, option.KEY=VALUE." },
  { "static build: ", "This program is statically linked: use a dynamically linked one, or link the plugin into it "
                      "(tn_runtime_preload)." },
  { "not a runtime plugin (no ", "It is a different kind of library: move it out of the plugin folder. If it is your "
                                 "plugin, add TN_PLUGIN_MANIFEST to a source file." },
  { "cut short", "The file is incomplete: copy, install or rebuild it." },
  { "became shorter", "The file is being written: try again. Install plugins by renaming." },
  { "damaged", "The file is damaged: copy, install or rebuild it." },
  { "not a shared object", "It is not a plugin: move it out of the plugin folder." },
  { "this process runs on ", "It was built for a different machine type: get or build a version for this machine." },
  { "this process needs ", "It was built for a different word size: get or build a version for this process." },
  { "this process is little-endian",
    "It was built for a different machine type: get or build a version for this machine." },
  { "ELF type ", "It is a program or an object file, not a shared object: link it with -shared." },
  { "the plugin is older", "Get a newer version of the plugin, or rebuild it with the headers of this library." },
  { "the library is older", "Update Tenon, or get a version of the plugin for this version." },
  { "manifest and its code disagree",
    "Its author must make the arguments of TN_PLUGIN_MANIFEST match the fields of tn_plugin." },
  { "manifest: ", "Its author must correct the arguments of TN_PLUGIN_MANIFEST and rebuild it." },
  { "manifest, byte ", "Its author must correct the arguments of TN_PLUGIN_MANIFEST and rebuild it." },
  { "it is world-writable", "Remove write permission for others: chmod o-w." },
  { "is owned by user ", "Install it as root: a process with elevated privileges loads only files owned by root." },
  { "it is group-writable", "Remove write permission for the group: chmod g-w." },
  { "permission denied", "Grant your user read permission: chmod a+r." },
  { "is not accessible to this user", "Grant your user search permission for that folder: chmod a+x." },
  { "more than 40 symbolic links", "The links form a loop: replace them with the file." },
  { "it has no entry ",
    "Its author must add TN_PLUGIN_DEFINE to one source file, compiled with the same -DTN_PLUGIN as the others." },
  { "undefined symbol",
    "It needs a function that none of its libraries provides: its author should link it with -Wl,-z,defs." },
  { "cannot open shared object file",
    "A required library is not installed: install the named library; ldd lists all of them." },
  { "the dynamic linker cannot open it", "The dynamic linker rejects it for the given reason; run ldd for details." },
  { "lacks the required callback", "Its author must set this callback in the session factory." },
  { "provides no session factory", "Its author must add a list of session factories to tn_plugin." },
  { "none of its session factories is named ", "Its author must give a factory the name in the manifest." },
  { "is not a valid runtime name", "Its author must rename it: [a-z][a-z0-9_.]*, preferably with a vendor prefix." },
  { "exists already", "Two plugins have the same name: remove one of them, or get one with another name." },
  { "another one of this name takes precedence over it", "Remove one of the two, or change the order of the folders." },
  { "struct_size", "It was not built with Tenon's headers, or its author did not set struct_size." },
  { "the file was replaced", "It has just been replaced: try again." },
  { "the file was changed", "It has just been modified: try again." },
  { "used all of the ",
    "Do not use it until its author has checked it: its memory use is unbounded. If it needs this much, "
    "increase TENON_PROBE_MEMORY_MB." },
  { " ended it; the last step",
    "Do not use it: it would crash your program in the same way. Report the signal and the step to its author; "
    "a debugger finds the location." },
  { "it ended its process",
    "Do not use it: it would end your program. Report this to its author: a plugin must not call exit." },
  { "it was not ready after ", "Do not use it: it would hang your program. If its device is this slow, increase "
                               "TENON_PROBE_TIMEOUT_MS." },
  { "cannot run: ", "The probe program is part of Tenon: reinstall it, or set TENON_PROBE_PROGRAM to its path." },
  { "it loads, but refuses a session",
    "Set the options that it requires: in the target, NAME:KEY=VALUE,..., or as a line "
    "option.KEY=VALUE in its .conf file. If it names none, report this to its author." },
  { "UNAVAILABLE", "It works, but not on this machine, for the given reason. Other runtimes are not affected." },
  { "its name is not a plugin name",
    "If it is a plugin, rename it, for example acme-fast.so to acme_fast.so; otherwise move it out of the folder." },
  { "it does not exist", "Create the folder, or remove it from the list." },
  { "' does not exist", "Specify the path of an existing file." },
  { "symbolic links form a loop", "Remove the links, or remove the folder from the list." },
  { "it is not a folder", "Remove it from the list: the list must contain folders, not files." },
  { "has an empty element", "Remove the extra colon from TENON_PLUGIN_PATH." },
  { "has a control character", "Retype the folder's path without line breaks and tabs." },
  { "not an absolute path", "Use the folder's absolute path, starting with /." },
  { "is not name=rank", "Set TENON_RANK to NAME=RANK,NAME=RANK with ranks from 0 to 1000." },
};

const char *runtimes_advice(const char *reason)
{
  for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++)
    if (strstr(reason, advices[i].part) != NULL) return advices[i].advice;
  return "Report this message to its author.";
}
