"""The Bump tab of TensorBoard: response profiles while they form.

A package of its own because TensorBoard imports it at its start: it needs NumPy and TensorBoard, and loads neither
torch nor Lightning. It reads through TensorBoard's data provider alone, never a file that a request names.
"""
