/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack: tensors in and out of other libraries, without a copy.
 *
 * DLPack is a memory layout that array libraries have agreed on: a struct that describes an array and has a function that gives
 * it back. Its structs are only named here, so that dlpack.h may be included, too, of whatever version, or not at all.
 *
 * Functions named _versioned are for DLManagedTensorVersioned, of DLPack 1.0 and later; the others for DLManagedTensor, which has
 * no place for flags.
 *
 * Memory. What comes in is the lender's: it is never written, and copied where it would be stored in state. It must not be
 * changed while the library has it. What goes out may be written by whoever gets it only as far as a tensor may be written:
 * when the caller was its only holder, or when its memory is the program's (tn_tensor_wrap) or came by DLPack without being
 * read-only. Otherwise a versioned one is flagged as read-only. One that is not versioned cannot say so: then nobody is to
 * write all the same, as consumers of it are used to. Memory that is never written - constants, mapped files, what came
 * in as read-only - does not go out that way at all.
 *
 * Only memory of the host goes in and out. Since 0.1 */
#ifndef TENON_DLPACK_H
#define TENON_DLPACK_H

#include <tenon/eager.h>
#include <tenon/tensor.h>

TN_BEGIN_DECLS
#ifndef TN_PLUGIN

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* ---- tensors ---- */

/* Describes a tensor for others. *out holds a reference on the tensor, which its deleter gives back: to be called once, by
 * whoever has *out last, from any thread, at any time, also after everything was closed. Its elements are at the address of the
 * tensor's own, its strides are set.
 * Returns TN_INVALID_ARGUMENT (NULL); TN_UNIMPLEMENTED: a dtype that DLPack does not have (strings, resources, variants,
 *         quantised ones; int4, uint4, int2 and uint2 only go out versioned), memory of a device; TN_FAILED_PRECONDITION:
 *         memory that is never written, not versioned; TN_RESOURCE_EXHAUSTED. *out is NULL then.
 * Any thread. Since 0.1 */
TN_API tn_status tn_tensor_to_dlpack(tn_tensor *tensor, struct DLManagedTensor **out, tn_error *err);
TN_API tn_status tn_tensor_to_dlpack_versioned(tn_tensor *tensor, struct DLManagedTensorVersioned **out, tn_error *err);

/* A tensor over memory that others describe (TN_BUFFER_FOREIGN). `managed` is taken over: its deleter, unless NULL, is called
 * once, by the thread that gives the last reference back. On failure it is still the caller's, who calls the deleter.
 * Returns TN_INVALID_ARGUMENT: NULL, a shape that cannot be, elements that do not lie one behind the other in row-major order
 *         (strides of dimensions of 1 do not matter), an address that is not aligned for the type;
 *         TN_UNIMPLEMENTED: another device than the host's memory or pinned memory of the host, a type that tensors do not
 *         have, a major version but 1; TN_RESOURCE_EXHAUSTED. *out is NULL then.
 * Any thread. Since 0.1 */
TN_API tn_status tn_tensor_from_dlpack(struct DLManagedTensor *managed, tn_tensor **out, tn_error *err);
TN_API tn_status tn_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *managed, tn_tensor **out, tn_error *err);

/* ---- handles of eager sessions ---- */

/* The tensor of a handle for others. It may outlive the handle and the session, which share it: a versioned one is flagged as
 * read-only unless the memory is the program's. In an asynchronous session this waits until the tensor is there.
 * Returns what tn_eager_tensor and tn_tensor_to_dlpack do. Since 0.1 */
TN_API tn_status tn_eager_to_dlpack(tn_eager_session *session, tn_eager_handle handle, struct DLManagedTensor **out,
                                    tn_error *err);
TN_API tn_status tn_eager_to_dlpack_versioned(tn_eager_session *session, tn_eager_handle handle,
                                              struct DLManagedTensorVersioned **out, tn_error *err);

/* A handle of what others describe. The deleter is called by the thread that deletes the tensor, which may be one of the
 * session's own (IN_BACKGROUND). On failure `managed` is still the caller's, and out is 0.
 * Returns what tn_tensor_from_dlpack and tn_eager_from_tensor do. Since 0.1 */
TN_API tn_status tn_eager_from_dlpack(tn_eager_session *session, struct DLManagedTensor *managed, tn_eager_handle *out,
                                      tn_error *err);
TN_API tn_status tn_eager_from_dlpack_versioned(tn_eager_session *session, struct DLManagedTensorVersioned *managed,
                                                tn_eager_handle *out, tn_error *err);

#endif
TN_END_DECLS
#endif
