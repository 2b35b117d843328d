"""The layering check finds what is planted, and nothing else."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_layers

CMAKE = """
fl_layer(base    DEPENDS fmt::fmt)
fl_layer(tensor  DEPENDS fl_base)
fl_layer(op      DEPENDS fl_tensor)
fl_layer(codegen DEPENDS fl_op RECURSE LLVM)
fl_layer(library DEPENDS fl_base ONEDNN POCKETFFT)
"""


class Layers(unittest.TestCase):
    def found(self, path, text, extra=()):
        """Messages for a tree with one file of interest."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            (root / "CMakeLists.txt").write_text(CMAKE)
            for name, content in ((path, text), *extra):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content)
            return [f"{where}:{line}: {message}" for where, line, message in check_layers.violations(root)]

    def test_earlier_layers_are_allowed(self):
        self.assertEqual(self.found("flambeau/op/a.h", '#include "flambeau/base/x.h"\n#include <vector>\n'), [])
        self.assertEqual(self.found("flambeau/op/a.h", '#include "flambeau/op/b.h"\n'), [])

    def test_later_layer(self):
        found = self.found("flambeau/base/a.cpp", '// comment\n#include "flambeau/tensor/x.h"\n')
        self.assertEqual(len(found), 1)
        self.assertIn("flambeau/base/a.cpp:2: layer base may not include flambeau/tensor/x.h", found[0])

    def test_layer_beside(self):
        self.assertEqual(len(self.found("flambeau/library/a.cpp", '#include "flambeau/op/x.h"\n')), 1)

    def test_relative_path_to_a_later_layer(self):
        later = ("flambeau/op/x.h", "")
        self.assertEqual(len(self.found("flambeau/base/a.h", '#  include "../op/x.h"\n', [later])), 1)

    def test_subfolders_belong_to_their_layer(self):
        self.assertEqual(len(self.found("flambeau/op/deep/er/a.h", '#include "flambeau/codegen/x.h"\n')), 1)

    def test_llvm(self):
        self.assertEqual(self.found("flambeau/codegen/cpu/a.cpp", "#include <llvm/IR/IRBuilder.h>\n"), [])
        self.assertEqual(len(self.found("flambeau/op/a.cpp", "#include <llvm/IR/IRBuilder.h>\n")), 1)

    def test_onednn(self):
        for header in ("<oneapi/dnnl/dnnl.hpp>", '"dnnl.h"'):
            self.assertEqual(self.found("flambeau/library/a.cpp", f"#include {header}\n"), [])
            self.assertEqual(len(self.found("flambeau/codegen/a.cpp", f"#include {header}\n")), 1)

    def test_pocketfft(self):
        self.assertEqual(self.found("flambeau/library/a.cpp", "#include <pocketfft.hpp>\n"), [])
        self.assertEqual(len(self.found("flambeau/base/a.cpp", "#include <pocketfft.hpp>\n")), 1)

    def test_python_nowhere(self):
        self.assertEqual(len(self.found("flambeau/op/a.cpp", "#include <Python.h>\n")), 1)

    def test_undeclared_folder(self):
        self.assertEqual(len(self.found("flambeau/mystery/a.h", "")), 1)

    def test_cycle_in_the_declarations(self):
        with self.assertRaises(SystemExit):
            check_layers.declared_layers("fl_layer(a DEPENDS fl_b)\nfl_layer(b DEPENDS fl_a)\n")


if __name__ == "__main__":
    unittest.main()
