/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of recurrent networks with vectors of any width. */
#include <ops/kernel/elements/vectors.h>

#include "conformance/support/rnn_kit.h"

static void release(tn_tensor **out, size_t n)
{
  for (size_t i = 0; i < n; i++) tn_tensor_unref(out[i]);
}

/* The results of a net under an option. */
static void results(const rnn_net *net, const rnn_feeds *feeds, int level, const char *disabled,
                    const char *const *fetches, size_t n, tn_tensor **out)
{
  ts t;
  rnn_open(&t, net, level, disabled);
  REQUIRE_OK(rnn_run(&t, net, feeds, fetches, n, out), &t.err);
  ts_fini(&t);
}

/* All kinds of vectors give the same bits, and so do cells and layers that add in the same
 * order. */
static void layer_bits__do_not_depend_on_vectors(void)
{
  for (rnn_kind kind = 0; kind < RNN_KINDS; kind++) {
    const rnn_net net = {
      .kind = kind, .steps = 5, .layers = 2, .batch = kind == RNN_LSTM ? 5 : 2, .in = 9, .cells = 21
    };
    const char *const fetch[] = { "h1_4:0" };
    tn_tensor *first, *out;
    tn__vectors_limit(TN__BASELINE);
    results(&net, NULL, 1, "", fetch, 1, &first);
    for (int vectors = TN__BASELINE; vectors <= TN__AVX512; vectors++) {
      tn__vectors_limit(vectors);
      for (int off = 0; off <= (kind == RNN_LSTM); off++) {
        results(&net, NULL, 1, off ? "layer" : "", fetch, 1, &out);
        CHECK_BYTES(tn_tensor_data(out), tn_tensor_data(first), tn_tensor_bytes(first));
        release(&out, 1);
      }
    }
    release(&first, 1);
  }
  tn__vectors_limit(TN__AVX512);
}

TAP_MAIN(TAP_TEST(layer_bits__do_not_depend_on_vectors))
