/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about a plugin, by what the library says of it. Each part stands in a message of core/registry, or comes from the
 * dynamic linker; tests/tools/runtimes.sh looks whether it still does. The first that fits counts. */
#include <string.h>

#include <tools/runtimes/runtimes.h>

static const struct {
  const char *part, *advice;
} advices[] = {
  { "it is disabled: ", "It was switched off on purpose. To have it, take it out of what is named there." },
  { ".conf', line ", "Correct that line of the file beside the plugin: enabled=yes or no, rank=0 to 1000, option.KEY=VALUE." },
  { "static build: ", "This program is linked statically: use one that is not, or link the plugin into it (tn_runtime_preload)." },
  { "not a runtime plugin (no ",
    "It is another kind of library: move it out of the plugin folder. If it is yours, say TN_PLUGIN_MANIFEST in one of its files." },
  { "cut short", "The file is incomplete: copy, install or build it again." },
  { "became shorter", "The file is being written: try again, and install by renaming." },
  { "damaged", "The file is damaged: copy, install or build it again." },
  { "not a shared object", "It is no plugin: move it out of the plugin folder." },
  { "this process runs on ", "It was built for another kind of machine: get or build it for this one." },
  { "this process needs ", "It was built for another kind of process: get or build one with as many bits." },
  { "this process is little-endian", "It was built for another kind of machine: get or build it for this one." },
  { "ELF type ", "It is a program or an object file, no shared object: link it with -shared." },
  { "the plugin is older", "Get a newer version of the plugin, or build it again with the headers of this library." },
  { "the library is older", "Update Tenon, or get a version of the plugin that was made for this one." },
  { "manifest and its code disagree", "Its author must make the arguments of TN_PLUGIN_MANIFEST equal to what tn_plugin says." },
  { "manifest: ", "Its author must correct the arguments of TN_PLUGIN_MANIFEST and build it again." },
  { "manifest, byte ", "Its author must correct the arguments of TN_PLUGIN_MANIFEST and build it again." },
  { "everybody may write to it", "Take that right away from what is named: chmod o-w." },
  { "belongs to user ", "Install it as root: a process with more rights than its caller takes root's files only." },
  { "a group may write to it", "Take that right away from what is named: chmod g-w." },
  { "permission denied", "Give your user the right to read it: chmod a+r." },
  { "may not be looked at by this user", "Give your user the right to enter that folder: chmod a+x." },
  { "more than 40 symbolic links", "The links go in a circle: remove them, and put the file there." },
  { "it has no entry ", "Its author says TN_PLUGIN_DEFINE in one of its files, compiled with the same -DTN_PLUGIN as the rest." },
  { "undefined symbol", "It needs a function that no library has which it was linked with: its author links it with -Wl,-z,defs." },
  { "cannot open shared object file",
    "A library that it needs is not installed: install the one that is named; ldd shows all of them." },
  { "the dynamic linker does not open it", "The system's linker refuses it, for the reason that it gives; ldd says more." },
  { "lacks the required callback", "Its author must fill in that slot of the session factory." },
  { "brings no session factory", "Its author must give tn_plugin a list of session factories." },
  { "none of its session factories is called ", "Its author must give a factory the name that the manifest says." },
  { "is no name for a runtime", "Its author must give it another name: [a-z][a-z0-9_.]*, best with a vendor's prefix." },
  { "exists already", "Two plugins have one name: remove one of them, or get one that has another." },
  { "another one of this name goes before it", "Remove one of the two, or change the order of the folders." },
  { "struct_size", "It was not built with Tenon's headers, or its author left struct_size out." },
  { "the file was replaced", "It was replaced just now: try again." },
  { "the file was changed", "It was changed just now: try again." },
  { "took all of the ", "Do not use it before its author has looked: it takes memory without end. If it needs as much, "
                        "TENON_PROBE_MEMORY_MB gives it more." },
  { " ended it; the last step", "Do not use it: it would end your program in the same way. Tell its author the signal and the step; "
                                "a debugger finds the place." },
  { "it ended its process", "Do not use it: it would end your program. Tell its author: a plugin never calls exit." },
  { "it was not ready after ", "Do not use it: it would hang your program. If its device is that slow, TENON_PROBE_TIMEOUT_MS gives it "
                               "more time." },
  { "cannot run: ", "The probe program is part of Tenon: install it again, or set TENON_PROBE_PROGRAM to where it is." },
  { "it loads, and refuses a session", "Give it the settings that it asks for: the target is NAME:KEY=VALUE,... or a line "
                                       "option.KEY=VALUE in its .conf file. If it asks for none, tell its author." },
  { "UNAVAILABLE", "It works, but not on this machine, for the reason that it gives. Other runtimes are not disturbed." },
  { "its name is no plugin's", "If it is a plugin, rename it, as acme-fast.so to acme_fast.so; else move it out of the folder." },
  { "it does not exist", "Make the folder, or take it out of the list." },
  { "' does not exist", "Give the path of a file that is there." },
  { "symbolic links go in a circle", "Remove the links, or take the folder out of the list." },
  { "it is no folder", "Take it out of the list: folders are wanted, not files." },
  { "has an empty element", "Take the colon too much out of TENON_PLUGIN_PATH." },
  { "has a control character", "Write the folder anew, without line ends and tabs." },
  { "not an absolute path", "Write the folder with its whole path, from / on." },
  { "is not name=rank", "Write TENON_RANK as NAME=RANK,NAME=RANK with ranks from 0 to 1000." },
};

const char *runtimes_advice(const char *reason)
{
  for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++)
    if (strstr(reason, advices[i].part) != NULL) return advices[i].advice;
  return "Tell its author what stands there.";
}
