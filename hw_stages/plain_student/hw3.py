# The plain student's answers to hw3, written from the handout alone.

        ### BEGIN YOUR SOLUTION (hw3.ndarray.reshape)
        strides = []
        for axis in range(len(shape)):
            stride = 1
            for later in range(axis + 1, len(shape)):
                stride = stride * shape[later]
            strides.append(stride)
        return NDArray.make(shape, strides, self._device, self._handle, self._offset)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw3.ndarray.permute)
        shape = []
        strides = []
        for j in range(len(axes)):
            shape.append(self._shape[axes[j]])
            strides.append(self._strides[axes[j]])
        return NDArray.make(shape, strides, self._device, self._handle, self._offset)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw3.ndarray.broadcast_to)
        added = len(shape) - len(self._shape)
        strides = []
        for axis in range(len(shape)):
            if axis < added:
                strides.append(0)
            elif self._shape[axis - added] != shape[axis]:
                strides.append(0)
            else:
                strides.append(self._strides[axis - added])
        return NDArray.make(shape, strides, self._device, self._handle, self._offset)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw3.ndarray.getitem)
        shape = []
        strides = []
        offset = self._offset
        for axis in range(len(slices)):
            s = slices[axis]
            shape.append(layout.slice_length(s))
            strides.append(self._strides[axis] * s.step)
            offset = offset + s.start * self._strides[axis]
        if 0 in shape:
            offset = self._offset
        return NDArray.make(shape, strides, self._device, self._handle, offset)
        ### END YOUR SOLUTION
