"""At the end of a run: how much the operator tests compared."""


def pytest_terminal_summary(terminalreporter):
    counts = [value for report in terminalreporter.stats.get("passed", [])
              for key, value in report.user_properties if key == "samples"]
    if counts:
        terminalreporter.write_line(f"operators: {len(counts)} against NumPy and SciPy, "
                                    f"{sum(counts)} samples")
