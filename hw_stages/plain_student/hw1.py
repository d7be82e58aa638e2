# The plain student's answers to hw1, written from the handout alone.

        ### BEGIN YOUR SOLUTION (hw1.div_scalar.compute)
        return a / self.scalar
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.power_scalar.compute)
        return a**self.scalar
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.ewise_div.compute)
        return a / b
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.ewise_pow.compute)
        return a**b
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.negate.compute)
        return -a
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.log.compute)
        return array_api.log(a)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.exp.compute)
        return array_api.exp(a)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.relu.compute)
        return array_api.maximum(a, 0)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.transpose.compute)
        order = []
        for i in range(len(a.shape)):
            order.append(i)
        if self.axes is None:
            first, second = -2, -1
        else:
            first, second = self.axes
        keep = order[first]
        order[first] = order[second]
        order[second] = keep
        return array_api.permute(a, tuple(order))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.reshape.compute)
        return array_api.reshape(a, self.shape)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.broadcast_to.compute)
        return array_api.broadcast_to(a, self.shape)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.summation.compute)
        return array_api.sum(a, self.axes, self.keepdims)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.matmul.compute)
        return a @ b
        ### END YOUR SOLUTION

### BEGIN YOUR SOLUTION (hw1.gradient_shapes)
def sum_to_shape(grad, shape):
    if len(grad.shape) > len(shape):
        return sum_to_shape(summation(grad, 0), shape)
    for i in range(len(shape)):
        if shape[i] != grad.shape[i]:
            return sum_to_shape(summation(grad, i, keepdims=True), shape)
    return grad
### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.div_scalar.gradient)
        return out_grad / self.scalar
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.power_scalar.gradient)
        if self.scalar == 0:
            return out_grad * 0
        a = node.inputs[0]
        return out_grad * self.scalar * power_scalar(a, self.scalar - 1)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.ewise_div.gradient)
        a, b = node.inputs
        return out_grad / b, -(out_grad * a) / (b * b)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.ewise_pow.gradient)
        a, b = node.inputs
        return out_grad * b * power(a, b - 1), out_grad * power(a, b) * log(a)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.negate.gradient)
        return -out_grad
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.log.gradient)
        return out_grad / node.inputs[0]
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.exp.gradient)
        return out_grad * exp(node.inputs[0])
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.relu.gradient)
        return out_grad * greater(node.inputs[0], 0)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.transpose.gradient)
        return transpose(out_grad, self.axes)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.reshape.gradient)
        return reshape(out_grad, node.inputs[0].shape)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.broadcast_to.gradient)
        return sum_to_shape(out_grad, node.inputs[0].shape)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.summation.gradient)
        shape = node.inputs[0].shape
        ones = []
        for i in range(len(shape)):
            if self.axes is None or i in self.axes:
                ones.append(1)
            else:
                ones.append(shape[i])
        return broadcast_to(reshape(out_grad, tuple(ones)), shape)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw1.matmul.gradient)
        a, b = node.inputs
        grad_a = matmul(out_grad, transpose(b))
        grad_b = matmul(transpose(a), out_grad)
        return sum_to_shape(grad_a, a.shape), sum_to_shape(grad_b, b.shape)
        ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw1.find_topo_sort)
    order = []
    met = set()
    stack = []
    for node in node_list:
        stack.append((node, False))
    while len(stack) > 0:
        node, inputs_are_listed = stack.pop()
        if inputs_are_listed:
            order.append(node)
        elif node not in met:
            met.add(node)
            stack.append((node, True))
            for x in node.inputs:
                stack.append((x, False))
    return order
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw1.compute_gradient_of_variables)
    grads = {}
    grads[output_tensor] = [out_grad]
    order = find_topo_sort([output_tensor])
    for i in range(len(order) - 1, -1, -1):
        node = order[i]
        if node not in grads:
            continue
        grad = sum_node_list(grads[node])
        if node.op is None:
            if node.requires_grad:
                node.grad = grad
            continue
        parts = node.op.gradient_as_tuple(grad, node)
        for j in range(len(node.inputs)):
            if parts[j] is None:
                continue
            x = node.inputs[j]
            if x not in grads:
                grads[x] = []
            grads[x].append(parts[j])
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw1.softmax_loss)
    n = Z.shape[0]
    rows = ndl.log(ndl.summation(ndl.exp(Z), 1)) - ndl.summation(Z * y_one_hot, 1)
    return ndl.summation(rows) / n
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw1.nn_epoch)
    k = W2.shape[1]
    start = 0
    while start < X.shape[0]:
        Xb = ndl.Tensor(X[start : start + batch])
        yb = ndl.Tensor(np.eye(k)[y[start : start + batch]])
        loss = softmax_loss(ndl.matmul(ndl.relu(ndl.matmul(Xb, W1)), W2), yb)
        loss.backward()
        new_W1 = ndl.Tensor(W1.numpy() - lr * W1.grad.numpy())
        new_W2 = ndl.Tensor(W2.numpy() - lr * W2.grad.numpy())
        W1 = new_W1
        W2 = new_W2
        start = start + batch
    return W1, W2
    ### END YOUR SOLUTION
