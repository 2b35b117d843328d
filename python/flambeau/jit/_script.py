"""Where PyTorch has them."""
from . import RecursiveScriptModule, ScriptFunction, ScriptModule, script

__all__ = ["RecursiveScriptModule", "ScriptFunction", "ScriptModule", "script"]
