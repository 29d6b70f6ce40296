// SPDX-License-Identifier: Apache-2.0
// Reusable parts of a runtime in C++: exceptions are caught at the callbacks and become errors,
// objects from the library have owners, and two classes supply the callbacks. Compile with
// -DTN_PLUGIN=<module>; C++17.
#ifndef TENON_HPP
#define TENON_HPP

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <tenon/runtime.h>

namespace tenon {

// ---- errors ----

// A call of the library failed; the text is in the error object passed to the call.
class failure : public std::exception {
 public:
  explicit failure(tn_status status) noexcept : status_(status) {}
  tn_status status() const noexcept { return status_; }
  const char *what() const noexcept override { return tn_status_text(status_); }

 private:
  tn_status status_;
};

// A failure with its own text: throw tenon::error(TN_INVALID_ARGUMENT, "...").
class error : public failure {
 public:
  error(tn_status status, std::string text) : failure(status), text_(std::move(text)) {}
  const char *what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

inline void check(tn_status status)
{
  if (status != TN_OK) throw failure(status);
}

// Runs f, which may throw, and returns its status. No exception leaves it: each callback does its
// work inside (P-94). A text already in `err` is kept, so a failure of the library keeps the
// library's message.
template <class F>
tn_status guarded(tn_error *err, F &&f) noexcept
{
  try {
    std::forward<F>(f)();
    return TN_OK;
  } catch (const failure &e) {
    return tn_error_set(err, e.status(), "%s", e.what());
  } catch (const std::bad_alloc &) {
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory");
  } catch (const std::exception &e) {
    return tn_error_set(err, TN_INTERNAL, "%s", e.what());
  } catch (...) {
    return tn_error_set(err, TN_INTERNAL, "an exception that says nothing");
  }
}

// ---- owners ----

struct deleter {
  void operator()(tn_tensor *tensor) const noexcept { tn_tensor_unref(tensor); }
  void operator()(tn_plan_layout *layout) const noexcept { tn_kit_layout_release(layout); }
  void operator()(tn_executable *executable) const noexcept { tn_kit_release(executable); }
  void operator()(void *memory) const noexcept { tn_free(memory); }
};
template <class T>
using owner = std::unique_ptr<T, deleter>;

// Memory aligned to 64 bytes, from the program's allocator; none for 0 bytes.
inline owner<void> allocate(std::size_t bytes)
{
  owner<void> memory(tn_alloc(bytes));
  if (!memory && bytes > 0) throw std::bad_alloc();
  return memory;
}

// A struct to be filled in by the library.
template <class T>
T sized() noexcept
{
  T object{};
  object.struct_size = sizeof object;
  return object;
}

// ---- tensors ----

inline owner<tn_tensor> make_tensor(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_error *err)
{
  tn_tensor *tensor = nullptr;
  check(tn_tensor_create(dtype, dims, rank, &tensor, err));
  return owner<tn_tensor>(tensor);
}

inline tn_view view_of(tn_tensor *tensor) noexcept
{
  tn_view view{};
  view.data = tn_tensor_data(tensor);
  view.dims = tn_tensor_dims(tensor);
  view.count = tn_tensor_elements(tensor);
  view.dtype = tn_tensor_dtype(tensor);
  view.rank = tn_tensor_rank(tensor);
  view.buffer = tn_tensor_buffer(tensor);
  return view;
}

// Whether elements are plain bytes that own no memory.
inline bool is_plain(tn_dtype dtype) noexcept
{
  return dtype != TN_STRING && dtype != TN_RESOURCE && dtype != TN_VARIANT;
}

// Checks a tensor that the caller supplied for an output; the library cannot check it before the
// step.
inline void require_shape(const tn_tensor *given, tn_dtype dtype, const int64_t *dims, int32_t rank)
{
  bool same = tn_tensor_dtype(given) == dtype && tn_tensor_rank(given) == rank;
  for (int32_t d = 0; same && d < rank; d++) same = tn_tensor_dims(given)[d] == dims[d];
  if (!same) throw error(TN_INVALID_ARGUMENT, "the tensor given for an output has another dtype or shape");
}

// Copies elements into a tensor that the caller supplied.
inline void copy_into(tn_tensor *to, const tn_view &from, tn_error *err)
{
  require_shape(to, from.dtype, from.dims, from.rank);
  if (is_plain(from.dtype)) {
    if (from.count > 0) std::memcpy(tn_tensor_data(to), from.data, tn_tensor_bytes(to));
    return;
  }
  if (from.dtype != TN_STRING) throw error(TN_UNIMPLEMENTED, "handles cannot be written into a tensor of the caller's");
  const auto *texts = static_cast<const tn_string *>(from.data);
  for (int64_t i = 0; i < from.count; i++) {
    std::size_t length = 0;
    const char *text = tn_string_data(&texts[i], &length);
    check(tn_tensor_set_string(to, i, text, length, err));
  }
}

// Makes a tensor with the elements and shape of `view`; `source` is the tensor that owns the
// memory, if any.
inline owner<tn_tensor> copy_of(const tn_view &view, const tn_tensor *source, tn_error *err)
{
  if (is_plain(view.dtype)) {
    auto copy = make_tensor(view.dtype, view.dims, view.rank, err);
    copy_into(copy.get(), view, err);
    return copy;
  }
  tn_tensor *whole = nullptr, *shaped = nullptr;
  check(tn_tensor_copy(source, &whole, err));
  owner<tn_tensor> owned(whole);
  check(tn_tensor_reshape(whole, view.dims, view.rank, &shaped, err));
  return owner<tn_tensor>(shaped);
}

// ---- callbacks ----

// The session factory, made from two classes of the author:
//
//   class Session                                the runtime's data for one session
//     static tn_status check_options(const tn_session_options *, tn_error *)   reports errors and stores nothing
//     Session(const tn_session_options *, tn_error *)
//   class Executable                             the executable of one plan, which lives as long as it
//     Executable(Session &, const tn_plan *, tn_error *)
//     void run(tn_step *, tn_error *) const      one step; called on several threads at once
//
// All of them may throw; destructors may not.
template <class Session, class Executable>
class runtime {
 public:
  static constexpr tn_session_factory factory(const char *name) noexcept
  {
    tn_session_factory f{};
    f.struct_size = TN_SESSION_FACTORY_SIZE;
    f.name = name;
    f.new_session = new_session;
    f.accepts_options = accepts_options;
    f.destroy_session = destroy_session;
    f.prepare = prepare;
    f.release = release;
    f.step = step;
    f.reset = reset;
    f.explain_options = explain_options;
    return f;
  }

  static constexpr tn_plugin plugin(const char *name, const char *version, const char *types,
                                    const tn_session_factory *const *factories, std::size_t n) noexcept
  {
    tn_plugin p{};
    p.struct_size = TN_PLUGIN_SIZE;
    p.abi_major = TN_ABI_MAJOR;
    p.abi_minor = TN_ABI_MINOR;
    p.kind = TN_PLUGIN_RUNTIME;
    p.name = name;
    p.version = version;
    p.types = types;
    p.factories = factories;
    p.n_factories = n;
    return p;
  }

 private:
  // The library sees both classes as opaque structs.
  static Session *mine(tn_runtime_session *session) noexcept { return reinterpret_cast<Session *>(session); }
  static Executable *mine(tn_executable *executable) noexcept { return reinterpret_cast<Executable *>(executable); }

  static tn_status new_session(const tn_session_factory *, const tn_session_options *options, tn_runtime_session **out,
                               tn_error *err) noexcept
  {
    *out = nullptr;
    return guarded(err, [&] {
      check(Session::check_options(options, err));
      *out = reinterpret_cast<tn_runtime_session *>(new Session(options, err));
    });
  }
  static tn_bool accepts_options(const tn_session_factory *, const tn_session_options *options) noexcept
  {
    return guarded(nullptr, [&] { check(Session::check_options(options, nullptr)); }) == TN_OK;
  }
  static void explain_options(const tn_session_factory *, const tn_session_options *options, tn_error *err) noexcept
  {
    guarded(err, [&] { check(Session::check_options(options, err)); });
  }
  static void destroy_session(const tn_session_factory *, tn_runtime_session *session) noexcept
  {
    delete mine(session);
  }

  static tn_status prepare(const tn_session_factory *, tn_runtime_session *session, const tn_plan *plan,
                           tn_executable **out, tn_error *err) noexcept
  {
    *out = nullptr;
    return guarded(err, [&] { *out = reinterpret_cast<tn_executable *>(new Executable(*mine(session), plan, err)); });
  }
  static void release(const tn_session_factory *, tn_runtime_session *, tn_executable *executable) noexcept
  {
    delete mine(executable);
  }
  static tn_status step(const tn_session_factory *, tn_runtime_session *, tn_executable *executable, tn_step *step,
                        tn_error *err) noexcept
  {
    return guarded(err, [&] { std::as_const(*mine(executable)).run(step, err); });
  }
  static tn_status reset(const tn_session_factory *self, const tn_session_options *, const char *const *containers,
                         std::size_t n, uint32_t flags, tn_error *err) noexcept
  {
    return tn_kit_reset(self, containers, n, flags, err);
  }
};

}  // namespace tenon

#endif
