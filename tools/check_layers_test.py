# SPDX-License-Identifier: Apache-2.0
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import check_layers  # noqa: E402


class CheckLayers(unittest.TestCase):
    def complaints(self, **files):
        """Complaints about a tree of these files; `__` in a name stands for a slash, `_hpp` for .hpp."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for name, text in files.items():
                path = root / name.replace("__", "/").replace("_hpp", ".hpp").replace("_cpp", ".cpp")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check_layers.check(root)

    def assert_one(self, complaints, part):
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn(part, complaints[0])

    def test_a_feature_may_use_core_and_platform(self):
        self.assertEqual([], self.complaints(
            src__event_cpp='#include <tocsin/event.hpp>\n#include "core/lot/lot.hpp"\n'
                           '#include "platform/futex/futex.hpp"\n',
            include__tocsin__event_hpp="#include <tocsin/deadline.hpp>\n",
            include__tocsin__deadline_hpp="", src__core__lot__lot_hpp="", src__platform__futex__futex_hpp=""))

    def test_core_may_not_use_a_feature(self):
        self.assert_one(self.complaints(src__core__lot__lot_cpp="#include <tocsin/event.hpp>\n",
                                        include__tocsin__event_hpp=""), "up to public")

    def test_platform_may_not_use_core(self):
        self.assert_one(self.complaints(src__platform__futex__linux_cpp='#include "../../core/lot/lot.hpp"\n',
                                        src__core__lot__lot_hpp=""), "up to core")

    def test_features_do_not_include_each_other(self):
        self.assert_one(self.complaints(include__tocsin__event_hpp="#include <tocsin/address.hpp>\n",
                                        include__tocsin__address_hpp=""), "below it")

    def test_the_folders_of_core_include_what_is_below_them(self):
        self.assertEqual([], self.complaints(
            src__core__wait__multi_wait_cpp='#include "core/lot/lot.hpp"\n#include "core/sync/futex_lock.hpp"\n',
            src__core__async__timer_thread_cpp='#include "core/lot/lot.hpp"\n',
            src__core__lot__lot_hpp='#include "core/sync/futex_lock.hpp"\n',
            src__core__sync__futex_lock_hpp='#include "platform/futex/futex.hpp"\n',
            src__platform__futex__futex_hpp=""))

    def test_no_folder_includes_one_above_or_beside_it(self):
        for path, included in (("src__core__sync__futex_lock_cpp", "core/lot/lot"),
                               ("src__core__lot__lot_cpp", "core/wait/multi_wait"),
                               ("src__core__lot__lot_cpp", "core/async/timer_thread"),
                               ("src__core__wait__multi_wait_cpp", "core/async/timer_thread"),
                               ("src__core__async__timer_thread_cpp", "core/wait/multi_wait"),
                               ("src__platform__system__posix_cpp", "platform/futex/futex"),
                               ("src__platform__futex__linux_cpp", "platform/poller/poller"),
                               ("src__platform__poller__linux_cpp", "platform/shared_table/shared_table")):
            name = "src__" + included.replace("/", "__") + "_hpp"
            with self.subTest(path):
                self.assert_one(self.complaints(**{path: f'#include "{included}.hpp"\n', name: ""}), "up or sideways")

    def test_every_file_of_core_and_platform_is_in_a_known_folder(self):
        self.assert_one(self.complaints(src__core__lot_hpp=""), "in none of the folders")
        self.assert_one(self.complaints(src__platform__somewhere__else_cpp=""), "in none of the folders")

    def test_a_feature_may_be_built_on_another_of_its_storey(self):
        self.assertEqual([], self.complaints(
            include__tocsin__word_lock_hpp="#include <tocsin/bit_lock.hpp>\n",
            include__tocsin__bit_lock_hpp=""))

    def test_a_feature_includes_no_feature_of_a_higher_storey(self):
        self.assertEqual([], self.complaints(include__tocsin__task_hpp="#include <tocsin/await.hpp>\n",
                                             include__tocsin__await_hpp="#include <tocsin/wait.hpp>\n",
                                             include__tocsin__wait_hpp=""))
        for low, high in (("event", "wait"), ("wait", "operation"), ("operation", "await"), ("await", "sender")):
            with self.subTest(low):
                self.assert_one(self.complaints(**{f"include__tocsin__{low}_hpp": f"#include <tocsin/{high}.hpp>\n",
                                                   f"include__tocsin__{high}_hpp": ""}), "below it")

    def test_the_header_of_everything_includes_everything(self):
        self.assertEqual([], self.complaints(include__tocsin__tocsin_hpp="#include <tocsin/event.hpp>\n",
                                             include__tocsin__event_hpp=""))

    def test_unit_tests_do_not_look_into_src(self):
        self.assert_one(self.complaints(tests__unit__event_test_cpp='#include "core/lot/lot.hpp"\n',
                                        src__core__lot__lot_hpp=""), "sees only <tocsin/...>")

    def test_internal_tests_do(self):
        self.assertEqual([], self.complaints(tests__internal__lot_test_cpp='#include "core/lot/lot.hpp"\n',
                                             src__core__lot__lot_hpp=""))

    def test_win32_sees_the_public_headers_and_their_details(self):
        self.assertEqual([], self.complaints(
            win32__src__wait_hpp="#include <tocsin/source.hpp>\n#include <tocsin/detail/lock_reference.hpp>\n",
            win32__src__wait_cpp='#include "wait.hpp"\n',
            include__tocsin__source_hpp="", include__tocsin__detail__lock_reference_hpp=""))
        self.assert_one(self.complaints(win32__src__wait_cpp='#include "core/lot/lot.hpp"\n',
                                        src__core__lot__lot_hpp=""), "win32/ sees only <tocsin/...>")
        self.assert_one(self.complaints(c__tocsin_cpp="#include <tocsin/detail/lock_reference.hpp>\n",
                                        include__tocsin__detail__lock_reference_hpp=""), "c/ sees only <tocsin/...>")

    def test_only_platform_includes_the_system(self):
        self.assert_one(self.complaints(src__core__lot__lot_cpp="#include <sys/syscall.h>\n"), "only src/platf")
        self.assert_one(self.complaints(src__event_cpp="#include <unistd.h>\n"), "only src/platform")
        self.assertEqual([], self.complaints(src__platform__futex__linux_cpp="#include <unistd.h>\n"))

    def test_an_order_needs_a_partner(self):
        self.assert_one(self.complaints(src__a_cpp="x.load(std::memory_order_acquire);\n"), "src/a.cpp:1")
        self.assert_one(self.complaints(win32__src__a_cpp="x.load(std::memory_order_acquire);\n"), "win32/src/a.cpp:1")
        self.assert_one(self.complaints(src__a_cpp="int a;\ndetail::full_fence();\n"), "src/a.cpp:2")

    def test_a_tag_needs_two_ends(self):
        load = "int a;\nx.load(std::memory_order_acquire);  // [publish]\n"
        store = "int b;\n// [publish]\nx.store(1,\n        std::memory_order_release);\n"
        self.assert_one(self.complaints(src__a_cpp=load), "[publish] has no partner")
        self.assertEqual([], self.complaints(src__a_cpp=load, src__b_cpp=store))

    def test_the_argument_at_the_top_of_a_file_is_not_an_end(self):
        text = "// Memory order\n// [publish] pairs the two.\n#include <atomic>\n" \
               "x.load(std::memory_order_acquire);  // [publish]\n"
        self.assert_one(self.complaints(src__a_cpp=text), "[publish] has no partner")

    def test_an_order_may_say_that_it_orders_nothing(self):
        self.assertEqual([], self.complaints(
            src__a_cpp="x.load(std::memory_order_relaxed);  // no order: a hint\n",
            src__b_cpp="// Only for speed: one cache line.\nx.load(std::memory_order_relaxed);\n"))

    def test_a_comment_at_the_end_of_a_statement_speaks_for_all_of_it(self):
        self.assertEqual([], self.complaints(
            src__a_cpp="return (x.load(std::memory_order_relaxed) & set_bit) !=\n"
                       "       0;  // no order: a hint\n"))
        self.assert_one(self.complaints(
            src__a_cpp="x.load(std::memory_order_relaxed);\nint b;  // no order: a hint\n"), ":1:")

    def test_a_comment_does_not_speak_for_far_lines(self):
        self.assert_one(self.complaints(
            src__a_cpp="int a;\n// no order: a hint\n\n\n\nx.load(std::memory_order_relaxed);\n"), ":6:")


if __name__ == "__main__":
    unittest.main()
