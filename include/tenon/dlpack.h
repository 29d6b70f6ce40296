/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack: exchange tensors with other libraries, without a copy.
 *
 * DLPack is a memory layout shared by array libraries: a struct that describes an array and has a
 * function to release it. Its structs are only declared here, so dlpack.h of any version may be
 * included too, or not at all.
 *
 * Functions named _versioned use DLManagedTensorVersioned of DLPack 1.0 and later; the others use
 * DLManagedTensor, which has no flags.
 *
 * Memory. An imported tensor belongs to the lender: the library never writes it, and copies it
 * where it would be stored in state. The lender must not change it while the library has it. The
 * consumer may write an exported tensor only if the caller was its only holder, or if its memory is
 * the program's (tn_tensor_wrap) or was imported by DLPack and not read-only. Otherwise a versioned
 * export is flagged as read-only. An unversioned export has no such flag; consumers must
 * nevertheless not write it, which is the usual convention. Memory that is never written
 * (constants, mapped files, read-only imports) is not exported unversioned at all.
 *
 * Only host memory can be exchanged. Since 0.1 */
#ifndef TENON_DLPACK_H
#define TENON_DLPACK_H

#include <tenon/eager.h>
#include <tenon/tensor.h>

TN_BEGIN_DECLS
#ifndef TN_PLUGIN

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* ---- tensors ---- */

/* Exports a tensor. *out holds a reference to the tensor, which its deleter releases. The last
 * owner of *out calls the deleter once, from any thread, at any time, also after everything was
 * closed. The data pointer is the address of the tensor's elements; strides are set.
 * Returns TN_INVALID_ARGUMENT (NULL); TN_UNIMPLEMENTED: a dtype that DLPack lacks (strings,
 *         resources, variants, quantised ones; int4, uint4, int2 and uint2 are only exported
 *         versioned), memory of a device; TN_FAILED_PRECONDITION: an unversioned export of memory
 *         that is never written; TN_RESOURCE_EXHAUSTED. *out is NULL then. Any thread. Since 0.1 */
TN_API tn_status tn_tensor_to_dlpack(tn_tensor *tensor, struct DLManagedTensor **out, tn_error *err);
TN_API tn_status tn_tensor_to_dlpack_versioned(tn_tensor *tensor, struct DLManagedTensorVersioned **out, tn_error *err);

/* Imports a tensor (TN_BUFFER_FOREIGN). The library takes over `managed`: the thread that releases
 * the last reference calls its deleter, unless NULL, once. On failure `managed` stays the caller's,
 * which then calls the deleter.
 * Returns TN_INVALID_ARGUMENT: NULL, an invalid shape, elements that are not contiguous in
 *         row-major order (strides of dimensions of 1 are ignored), an address that is not aligned
 *         for the type; TN_UNIMPLEMENTED: a device other than host memory or pinned host memory, a
 *         type that tensors lack, a major version other than 1; TN_RESOURCE_EXHAUSTED. *out is NULL
 *         then. Any thread. Since 0.1 */
TN_API tn_status tn_tensor_from_dlpack(struct DLManagedTensor *managed, tn_tensor **out, tn_error *err);
TN_API tn_status tn_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *managed, tn_tensor **out,
                                                 tn_error *err);

/* ---- handles of eager sessions ---- */

/* Exports the tensor of a handle. It may outlive the handle and the session, which share it: a
 * versioned export is flagged as read-only unless the memory is the program's. In an asynchronous
 * session this waits until the tensor is available. Returns as tn_eager_tensor and
 * tn_tensor_to_dlpack. Since 0.1 */
TN_API tn_status tn_eager_to_dlpack(tn_eager_session *session, tn_eager_handle handle, struct DLManagedTensor **out,
                                    tn_error *err);
TN_API tn_status tn_eager_to_dlpack_versioned(tn_eager_session *session, tn_eager_handle handle,
                                              struct DLManagedTensorVersioned **out, tn_error *err);

/* Imports a tensor and makes a handle to it. The thread that deletes the tensor calls the deleter;
 * it may be a thread of the session (IN_BACKGROUND). On failure `managed` stays the caller's, and
 * out is 0. Returns as tn_tensor_from_dlpack and tn_eager_from_tensor. Since 0.1 */
TN_API tn_status tn_eager_from_dlpack(tn_eager_session *session, struct DLManagedTensor *managed, tn_eager_handle *out,
                                      tn_error *err);
TN_API tn_status tn_eager_from_dlpack_versioned(tn_eager_session *session, struct DLManagedTensorVersioned *managed,
                                                tn_eager_handle *out, tn_error *err);

#endif
TN_END_DECLS
#endif
