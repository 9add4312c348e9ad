"""The part of the tests that `make test` leaves to `make test-all`: long ones, of which shorter ones see the like.

`pytest --short` leaves them out; `pytest` alone runs everything. A new test belongs here once it takes ten seconds, or
once its cases together take half a minute, and others see the same code.
"""

from __future__ import annotations

import re
import zlib

SHARES: dict[str, dict[str, int]] = {
    "tests/autodiff": {
        "test_argmax::test_both_modes_batches_and_second_derivatives": 3,
        "test_complex::": 3,
        "test_convolutions::test_both_modes_agree": 3,
        "test_custom::test_contractions_that_a_rule_has_are_not_kept": 0,
        "test_derivatives::test_batches_agree_with_loops": 3,
        "test_derivatives::test_both_modes_agree_with_finite_differences": 3,
        "test_derivatives::test_second_derivatives": 3,
        "test_functional::test_two_orders": 3,
        "test_random::test_derivatives_and_batches": 6,
        "test_random_loops::test_derivatives_of_loops": 3,
        "test_records::test_both_modes_and_batches_agree": 3,
        "test_rows::test_rows_that_are_read_again": 5,
        "test_while_loops::test_second_derivatives_and_batches": 0,
    },
    "tests/benchmarks": {
        "test_decoding::test_one_program_writes_the_tokens_of_numpy": 0,
        "test_gpu_run::test_a_rehearsal_of_a_test_and_a_workload": 0,
        "test_gradients::test_a_compiled_derivative_is_what_differences_say": 4,
        "test_harness::test_a_quick_run_measures_what_a_process_pays_once": 0,
        "test_harness::test_a_quick_run_prints_every_workload": 0,
        "test_memory::test_the_gradient_of_a_mixture_keeps_little": 0,
        "test_polybench::test_numbers_are_those_of_python": 4,
        "test_programs::test_a_program_equals_plain_python": 4,
    },
    "tests/codegen": {
        "cpu/test_contract::": 5,
        "cpu/test_contract_small::test_sizes": 6,
        "cpu/test_conv::": 4,
        "gpu/test_row_work::test_no_row_is_reduced_for_each_element": 4,
        "gpu/test_streamed::test_masked_tiles_are_skipped": 4,
        "gpu/test_streamed_mma::test_numbers": 4,
    },
    "tests/docs": {"test_pages::test_a_program_prints_what_the_page_says": 3},
    "tests/driver": {
        "test_dynamic_sizes::test_one_program_has_the_numbers_of_numpy_for_all_sizes": 4,
        "test_kept_memory::test_a_program_that_is_dropped_keeps_no_memory": 2,
    },
    "tests/examples": {
        "test_bayes::test_the_program_runs_and_agrees_with_the_reference": 0,
        "test_clusters::test_the_program_runs_and_draws": 0,
        "test_digits::test_a_quarter_of_the_digits_is_held_out": 0,
        "test_digits_resnet::test_it_learns_and_is_saved": 0,
        "test_fluid::test_the_program_runs_and_draws": 0,
        "test_gaussian_process::test_the_program_runs_and_draws": 0,
        "test_gpt::test_the_program_runs_and_draws": 0,
        "test_ising::test_the_program_runs_and_draws": 0,
        "test_vae::test_it_learns_and_its_loss_compiled_is_that_of_numpy": 0,
        "test_vae::test_the_program_runs_and_draws": 0,
    },
    "tests/frontend": {
        "arrays/test_checked_indices::test_data_dependent_indices_are_checked": 3,
        "arrays/test_random_indices::test_any_index": 0,
        "arrays/test_weak_numbers::test_numbers_are_what_they_are_in_numpy": 4,
        "functions/test_data_sizes::test_functions_return_what_numpy_does": 3,
        "functions/test_decompositions::test_derivatives": 5,
        "functions/test_decompositions::test_derivatives_of_eigenvalues": 2,
        "functions/test_decompositions::test_gives_what_numpy_gives": 4,
        "functions/test_decompositions::test_gives_what_numpy_gives_of_square_matrices": 4,
        "functions/test_decompositions::test_many_small_matrices": 4,
        "functions/test_decompositions::test_second_derivatives": 6,
        "functions/test_factorizations::test_gives_what_numpy_gives_at_every_size": 2,
        "functions/test_fourier::test_dtypes_and_norms": 3,
        "functions/test_fourier::test_many_short_rows": 3,
        "functions/test_linear_algebra::test_derivatives_of_first_and_second_order": 3,
        "functions/test_linear_algebra::test_gives_what_numpy_gives": 3,
        "loops/test_argument_lists::test_functions_of_whole_lists[3000]": 0,
        "loops/test_counted_lengths::test_random_counts": 4,
        "loops/test_counted_lengths::test_results_are_those_of_numpy": 3,
        "loops/test_resized_arrays::test_agrees_with_python": 3,
        "loops/test_shrinking::test_stays_a_loop": 3,
    },
    "tests/fuzz": {
        "test_dynamic_images::": 4,
        "test_dynamic_programs::": 5,
        "test_mutated_modules::test_mutated_modules": 0,
        "test_products::test_random_products": 4,
        "test_random_buckets::test_buckets": 0,
        "test_random_device_programs::": 0,
        "test_random_lengths::test_random_programs": 4,
        "test_random_lists::test_lists": 0,
        "test_random_loops::test_random_loops": 4,
        "test_real_programs::test_program": 3,
        "test_shrinking_programs::test_random_programs": 0,
    },
    "tests/lazy": {
        "test_arrays::test_long_chains_are_right_at_the_seams": 0,
        "test_arrays::test_numbers_that_change_from_call_to_call": 4,
        "test_random_programs::test_random_programs": 0,
    },
    "tests/library": {
        "test_function_records::test_batches": 3,
        # Derivatives of special functions and densities are compared with exact ones in tests/special and tests/stats.
        "test_function_records::test_derivatives[mlirml.special": 6,
        "test_function_records::test_derivatives[mlirml.stats": 6,
        "test_function_records::test_derivatives": 2,
        "test_function_records::test_values[others": 6,
        "test_function_records::test_values[usual": 2,
    },
    "tests/linalg": {
        "test_linalg::test_the_condition_of_a_singular_matrix_is_infinite": 3,
        "test_linalg::test_functions_of_matrices": 2,
        "test_linalg::test_lu": 3,
        "test_linalg::test_solutions_by_lu": 3,
        "test_linalg::test_triangular_systems": 4,
        "test_many_right_sides::test_residuals": 2,
    },
    "tests/ndimage": {
        "test_filters::test_compiled_filters_are_scipys_by_its_names": 3,
        "test_filters::test_derivatives_are_those_of_differences": 0,
        "test_interpolation::test_compiled_interpolation_is_scipys_by_its_names": 0,
        "test_interpolation::test_derivatives_are_those_of_differences": 0,
        "test_labels::test_distances": 3,
        "test_labels::test_measurements": 3,
    },
    "tests/nn": {
        "test_interpolation::test_points": 3,
        "test_interpolation::test_sizes": 3,
        "test_records::test_record[usual": 2,
        "test_attention_layers::test_a_language_model_learns_to_repeat": 0,
        "test_attention_layers::test_blocks_decode_with_caches_and_drop_by_keys": 2,
        "test_attention_layers::test_decoding_with_a_cache_is_causal_attention": 3,
        "test_attention_layers::test_each_head_is_attention": 2,
        "test_records::test_record[others": 6,
        "test_recurrent_layers::test_batches_and_derivatives": 3,
        "test_tails::test_relative_errors": 4,
        "test_transposed_convolutions::test_random": 6,
    },
    "tests/ops": {
        "test_partition::test_partitions_keep_the_contract": 3,
        "test_records::test_record[usual": 2,
        "test_array_arguments::test_elements_at_the_edges_of_equal_bins": 4,
        "test_device_records::test_record": 3,
        "test_not_finite::test_padding_of_convolutions_is_multiplied_by_nothing": 4,
        "test_powers::": 3,
        "test_records::test_record[others": 6,
        "test_spread::test_error_of_shifted_numbers": 4,
    },
    "tests/pipelines": {
        "bufferize/test_copies_in_loops::test_no_array_is_copied_in_random_loops": 0,
        "checks/test_fold_clamps::": 0,
        "memref/test_jam_recurrences::test_recurrences": 6,
        "memref/test_lower_loops::test_places_in_rows_of_several_blocks": 4,
        "memref/test_splice_loads::test_stencils": 10,
        "memref/test_split_masked::test_random_masks": 4,
        "memref/test_split_masked::test_every_mask": 4,
        "memref/test_tile_sweeps::test_bits_do_not_change": 4,
        "tensor/test_block_examples::test_blocks_give_the_numbers_of_the_reference": 4,
        "tensor/test_jam_updates::test_programs": 3,
        "tensor/test_move_reshapes::test_iterations_read_what_they_need": 8,
        "tensor/test_recompute_elements::test_gradients_give_the_numbers_of_the_reference": 4,
        "tensor/test_reduce_products::test_parts_of_products_are_exact": 6,
        "tensor/test_skip_masked::test_every_mask": 4,
        "tensor/test_skip_masked::test_gradients_of_random_masks": 5,
        "tensor/test_skip_masked::test_random_masks": 4,
        "tensor/test_widen_columns::test_programs": 4,
    },
    "tests/raising": {
        "test_ranges::test_ranges_hold_what_loops_carry": 4,
        "test_shared_values::test_chains_of_floats": 4,
        "test_shared_values::test_chains_of_integers": 4,
    },
    "tests/random": {
        "test_draws_in_loops::test_draws_in_loops_are_those_of_uncompiled_functions": 3,
        "test_implicit_derivatives::test_lanes_and_the_generator": 0,
        "test_implicit_derivatives::test_numbers_below_the_least_float_have_a_slope_of_their_logarithm": 0,
        "test_implicit_derivatives::test_the_mean_slope_of_beta_numbers_is_that_of_their_mean": 2,
        "test_distributions::test_continuous": 3,
        "test_distributions::test_elements_drawn_by_rejection_do_not_depend_on_the_others": 3,
        "test_distributions::test_poisson": 3,
        "test_generator::test_integers_and_choices": 0,
        "test_generator::test_methods_draw_from_the_distributions_of_numpy": 3,
    },
    "tests/runtime": {"test_fft_lines::": 0},
    "tests/special": {
        "test_special::test_second_derivatives_of_incomplete_functions": 0,
        "test_special::test_derivatives[": 3,
        "test_special::test_derivatives_in_parameters[": 4,
        "test_special::test_derivatives_in_parameters_forward_and_of_f32": 2,
        "test_special::test_names_of_scipy_are_compiled": 4,
        "test_special::test_single_precision_needs_no_double": 4,
        "test_special::test_special_values_of_several_arguments": 4,
        "test_special::test_values": 3,
    },
    "tests/stats": {
        "test_stats::test_derivatives[": 3,
        "test_stats::test_derivatives_of_quantiles": 3,
        "test_stats::test_values": 3,
    },
    "tests/targets": {
        "test_cuda::test_assembles": 4,
        "test_device_attention::": 4,
        "test_device_models::": 4,
        "test_device_order::test_all_ways_have_the_results_of_the_cpu": 4,
        "test_device_products::test_convolutions_of_small_floats": 4,
        "test_device_products::test_products": 4,
        "test_device_programs::test_a_thousand_launches_are_made_without_waiting": 0,
        "test_device_sizes::test_one_program_has_the_numbers_of_numpy_for_all_sizes": 6,
        "test_device_sizes::test_random_programs_have_the_numbers_of_numpy": 3,
        "test_device_tiles::test_causal_attention": 4,
        "test_device_tiles::test_products": 4,
        "test_device_tiles::test_reductions_of_rows": 4,
        "test_device_tiles::test_rounded_factors": 5,
        "test_device_transforms::test_programs": 4,
    },
    "tests/tuning": {
        "test_schedule_space::test_random_schedules_compute_the_same_numbers": 4,
        "test_tuned_loops::test_schedules_compute_the_same_numbers": 3,
    },
}
"""Of each test, one case in so many that stays in the short run, and 0 if none does. A name ends where the test's own
ends; one that ends in `::` names all tests of a file, and one with a bracket the cases that begin so."""


def _pattern(folder: str, name: str) -> str:
    exact = name.endswith("::") or "[" in name
    return re.escape(f"{folder}/{name}".replace("::", ".py::", 1)) + ("" if exact else r"(?=\[|$)")


_PATTERNS = [
    (re.compile(_pattern(folder, name)), share) for folder, tests in SHARES.items() for name, share in tests.items()
]


def is_long(test: str) -> bool:
    """Whether the short run leaves out a test, named as pytest does: for whatever else there is, always the same."""
    share = next((share for pattern, share in _PATTERNS if pattern.match(test)), 1)
    return not share or zlib.crc32(test.encode()) % share != 0
