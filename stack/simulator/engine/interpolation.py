"""Step times by (bi)linear interpolation; beyond a grid's end its last cell is continued, before its start held."""

from stack.simulator.engine.layout import Floats


def cell(grid: Floats, x: float) -> int:
    """Index of the grid cell that holds `x`, clipped to the grid."""
    low, high = 0, grid.shape[0] - 1
    if x <= grid[0]:
        return 0
    if x >= grid[high]:
        return int(high - 1)
    while high - low > 1:
        middle = (low + high) >> 1
        if grid[middle] <= x:
            low = middle
        else:
            high = middle
    return int(low)


def along(grid: Floats, values: Floats, x: float) -> float:
    """Linear interpolation."""
    i = cell(grid, x)
    u = max(0.0, (x - grid[i]) / (grid[i + 1] - grid[i]))
    return float(values[i] + (values[i + 1] - values[i]) * u)


def across(rows: Floats, columns: Floats, values: Floats, x: float, y: float) -> float:
    """Bilinear interpolation."""
    i, j = cell(rows, x), cell(columns, y)
    u = max(0.0, (x - rows[i]) / (rows[i + 1] - rows[i]))
    v = max(0.0, (y - columns[j]) / (columns[j + 1] - columns[j]))
    near = values[i, j] * (1 - u) + values[i + 1, j] * u
    far = values[i, j + 1] * (1 - u) + values[i + 1, j + 1] * u
    return float(near * (1 - v) + far * v)
