// SPDX-License-Identifier: Apache-2.0
// Run by make check: no exception leaves a callback (P-94). The callbacks are those of tenon.hpp,
// with a session and an executable that throw. Stubs replace the functions of the library that they
// use.
#include <cstdarg>
#include <cstdio>
#include <stdexcept>

#include "tenon.hpp"

const tn_host *TN_HOST_TABLE = nullptr;

namespace {

enum { NOTHING, FAILURE, ERROR, BAD_ALLOC, EXCEPTION, NUMBER } thrown;

void throw_it()
{
  switch (thrown) {
  case FAILURE: throw tenon::failure(TN_NOT_FOUND);
  case ERROR: throw tenon::error(TN_OUT_OF_RANGE, "too far");
  case BAD_ALLOC: throw std::bad_alloc();
  case EXCEPTION: throw std::logic_error("a mistake");
  case NUMBER: throw 7;
  default: break;
  }
}

struct Session {
  static tn_status check_options(const tn_session_options *, tn_error *)
  {
    throw_it();
    return TN_OK;
  }
  Session(const tn_session_options *, tn_error *) { throw_it(); }
};

struct Executable {
  Executable(Session &, const tn_plan *, tn_error *) { throw_it(); }
  void run(tn_step *, tn_error *) const { throw_it(); }
};

char text[200];

tn_status error_set(tn_error *, tn_status code, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return code;
}

const char *status_text(tn_status) { return "the library's words"; }

int failed = 0;

void check(const char *what, tn_status found, tn_status wanted, const char *words)
{
  if (found == wanted && std::strcmp(text, words) == 0) return;
  std::printf("%s: status %d '%s', wanted %d '%s'\n", what, int{found}, text, int{wanted}, words);
  failed = 1;
}

void check_all(tn_status wanted, const char *words)
{
  static constexpr tn_session_factory f = tenon::runtime<Session, Executable>::factory("check");
  alignas(Session) char session[sizeof(Session)];
  alignas(Executable) char executable[sizeof(Executable)];
  auto *s = reinterpret_cast<tn_runtime_session *>(session), *made = s;
  auto *e = reinterpret_cast<tn_executable *>(executable), *prepared = e;
  check("new_session", f.new_session(&f, nullptr, &made, nullptr), wanted, words);
  check("prepare", f.prepare(&f, s, nullptr, &prepared, nullptr), wanted, words);
  check("step", f.step(&f, s, e, nullptr, nullptr), wanted, words);
  text[0] = 0;
  f.explain_options(&f, nullptr, nullptr);
  check("explain_options", wanted, wanted, words);
  if (f.accepts_options(&f, nullptr) != (wanted == TN_OK) || (made == nullptr) != (wanted != TN_OK)) failed = 1;
  if (made != nullptr) f.destroy_session(&f, made);
  if (prepared != nullptr) f.release(&f, s, prepared);
}

}  // namespace

int main()
{
  tn_host_base base{};
  base.error_set = error_set;
  base.tn_status_text = status_text;
  tn_host host{};
  host.base = &base;
  TN_HOST_TABLE = &host;
  thrown = NOTHING, check_all(TN_OK, "");
  thrown = FAILURE, check_all(TN_NOT_FOUND, "the library's words");
  thrown = ERROR, check_all(TN_OUT_OF_RANGE, "too far");
  thrown = BAD_ALLOC, check_all(TN_RESOURCE_EXHAUSTED, "no memory");
  thrown = EXCEPTION, check_all(TN_INTERNAL, "a mistake");
  thrown = NUMBER, check_all(TN_INTERNAL, "an exception that says nothing");
  return failed;
}
