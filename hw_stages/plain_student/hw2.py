# The plain student's answers to hw2, written from the handout alone.

    ### BEGIN YOUR SOLUTION (hw2.xavier_uniform)
    b = gain * math.sqrt(6 / (fan_in + fan_out))
    return rand(*shape, low=-b, high=b, **kwargs)
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw2.xavier_normal)
    std = gain * math.sqrt(2 / (fan_in + fan_out))
    return randn(*shape, mean=0, std=std, **kwargs)
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw2.kaiming_uniform)
    b = math.sqrt(2) * math.sqrt(3 / fan_in)
    return rand(*shape, low=-b, high=b, **kwargs)
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw2.kaiming_normal)
    std = math.sqrt(2) / math.sqrt(fan_in)
    return randn(*shape, mean=0, std=std, **kwargs)
    ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.log_sum_exp.compute)
        largest = array_api.max(a, self.axes, True)
        total = array_api.sum(array_api.exp(a - largest), self.axes, False)
        return array_api.log(total) + array_api.reshape(largest, total.shape)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.log_sum_exp.gradient)
        a = node.inputs[0]
        kept = []
        for i in range(a.ndim):
            if self.axes is None or i in self.axes or i - a.ndim in self.axes:
                kept.append(1)
            else:
                kept.append(a.shape[i])
        value = broadcast_to(reshape(node, tuple(kept)), a.shape)
        outer = broadcast_to(reshape(out_grad, tuple(kept)), a.shape)
        return outer * exp(a - value)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.log_softmax.compute)
        largest = array_api.max(a, self.axis, True)
        shifted = a - largest
        total = array_api.sum(array_api.exp(shifted), self.axis, True)
        return shifted - array_api.log(total)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.log_softmax.gradient)
        kept = list(node.shape)
        kept[self.axis] = 1
        total = reshape(summation(out_grad, self.axis), tuple(kept))
        total = broadcast_to(total, node.shape)
        return out_grad - exp(node) * total
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.linear.init)
        weight = init.kaiming_uniform(in_features, out_features, device=device, dtype=dtype)
        self.weight = Parameter(weight)
        self.bias = None
        if bias:
            column = init.kaiming_uniform(out_features, 1, device=device, dtype=dtype)
            self.bias = Parameter(column.reshape((1, out_features)))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.linear.forward)
        y = x @ self.weight
        if self.bias is not None:
            y = y + self.bias.broadcast_to(y.shape)
        return y
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.flatten.forward)
        size = 1
        for i in range(1, x.ndim):
            size = size * x.shape[i]
        return x.reshape((x.shape[0], size))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.relu.forward)
        return ops.relu(x)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.sequential.forward)
        for i in range(len(self.modules)):
            x = self.modules[i](x)
        return x
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.residual.forward)
        return self.fn(x) + x
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.softmax_loss.forward)
        count, classes = logits.shape
        hot = init.one_hot(classes, y, device=logits.device, dtype=logits.dtype)
        picked = (logits * hot).sum((1,))
        losses = ops.logsumexp(logits, (1,)) - picked
        return losses.sum() / count
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.batch_norm.init)
        self.weight = Parameter(init.ones(dim, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(dim, device=device, dtype=dtype))
        self.running_mean = init.zeros(dim, device=device, dtype=dtype)
        self.running_var = init.ones(dim, device=device, dtype=dtype)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.batch_norm.forward)
        count = x.shape[0]
        if self.training:
            mean = x.sum((0,)) / count
            away = x - mean.broadcast_to(x.shape)
            var = (away * away).sum((0,)) / count
            old, new = 1 - self.momentum, self.momentum
            self.running_mean.data = self.running_mean.data * old + mean.data * new
            self.running_var.data = self.running_var.data * old + var.data * new
        else:
            var = self.running_var
            away = x - self.running_mean.broadcast_to(x.shape)
        root = (var + self.eps) ** 0.5
        y = away / root.broadcast_to(x.shape)
        return y * self.weight.broadcast_to(x.shape) + self.bias.broadcast_to(x.shape)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.layer_norm.init)
        self.weight = Parameter(init.ones(dim, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(dim, device=device, dtype=dtype))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.layer_norm.forward)
        count = x.shape[0]
        mean = (x.sum((1,)) / self.dim).reshape((count, 1))
        away = x - mean.broadcast_to(x.shape)
        var = ((away * away).sum((1,)) / self.dim).reshape((count, 1))
        root = (var + self.eps) ** 0.5
        y = away / root.broadcast_to(x.shape)
        return y * self.weight.broadcast_to(x.shape) + self.bias.broadcast_to(x.shape)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.dropout.forward)
        if not self.training:
            return x
        keep = 1 - self.p
        mask = init.randb(*x.shape, p=keep, device=x.device, dtype=x.dtype)
        if keep == 0:
            return x * init.zeros_like(mask)
        return x * mask / keep
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.sgd.step)
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad.data + p.data * self.weight_decay
            if p not in self.u:
                self.u[p] = zeros_like(p)
            self.u[p] = self.u[p] * self.momentum + g * (1 - self.momentum)
            p.data = p.data - self.u[p] * self.lr
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.adam.step)
        self.t = self.t + 1
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad.data + p.data * self.weight_decay
            if p not in self.m:
                self.m[p] = zeros_like(p)
                self.v[p] = zeros_like(p)
            self.m[p] = self.m[p] * self.beta1 + g * (1 - self.beta1)
            self.v[p] = self.v[p] * self.beta2 + g * g * (1 - self.beta2)
            m_hat = self.m[p] / (1 - self.beta1**self.t)
            v_hat = self.v[p] / (1 - self.beta2**self.t)
            p.data = p.data - m_hat * self.lr / (v_hat**0.5 + self.eps)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.random_flip_horizontal)
        if np.random.rand() >= self.p:
            return img
        out = img.copy()
        width = img.shape[1]
        for j in range(width):
            out[:, j] = img[:, width - 1 - j]
        return out
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.random_crop)
        shift_x, shift_y = np.random.randint(low=-self.padding, high=self.padding + 1, size=2)
        height, width = img.shape[0], img.shape[1]
        out = np.zeros_like(img)
        for i in range(height):
            for j in range(width):
                row, column = i + shift_x, j + shift_y
                if 0 <= row < height and 0 <= column < width:
                    out[i, j] = img[row, column]
        return out
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.mnist_dataset.init)
        images, labels = read_pair(image_filename, label_filename)
        count, rows, columns = images.shape
        self.images = np.zeros((count, rows, columns, 1), dtype=np.float32)
        for i in range(count):
            self.images[i, :, :, 0] = images[i] / 255
        self.labels = labels
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.mnist_dataset.len)
        return self.images.shape[0]
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.mnist_dataset.getitem)
        if isinstance(index, (int, np.integer)):
            return self.apply_transforms(self.images[index].copy()), self.labels[index]
        images = []
        for i in np.arange(len(self))[index]:
            images.append(self.apply_transforms(self.images[i].copy()))
        if len(images) == 0:
            return self.images[index].copy(), self.labels[index].copy()
        return np.stack(images), self.labels[index].copy()
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.data_loader.iter)
        count = len(self.dataset)
        if self.shuffle:
            order = np.random.permutation(count)
        else:
            order = np.arange(count)
        start = 0
        while start < count:
            yield self._batch(order[start : start + self.batch_size])
            start = start + self.batch_size
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw2.data_loader.batch)
        items = []
        for i in indices:
            items.append(fields_of(self.dataset[int(i)]))
        batch = []
        for values in columns(items):
            batch.append(self._tensor(stack(values)))
        return tuple(batch)
        ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw2.residual_block)
    body = nn.Sequential(
        nn.Linear(dim, hidden_dim),
        norm(hidden_dim),
        nn.ReLU(),
        nn.Dropout(drop_prob),
        nn.Linear(hidden_dim, dim),
        norm(dim),
    )
    return nn.Sequential(nn.Residual(body), nn.ReLU())
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw2.mlp_resnet)
    modules = [nn.Flatten(), nn.Linear(dim, hidden_dim), nn.ReLU()]
    for _ in range(num_blocks):
        modules.append(ResidualBlock(hidden_dim, hidden_dim // 2, norm, drop_prob))
    modules.append(nn.Linear(hidden_dim, num_classes))
    return nn.Sequential(*modules)
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw2.epoch)
    np.random.seed(4)
    if opt is not None:
        model.train()
    else:
        model.eval()
    wrong = 0
    total = 0.0
    count = 0
    for x, y in dataloader:
        logits = model(x)
        loss = nn.SoftmaxLoss()(logits, y)
        scores = logits.numpy()
        labels = y.numpy()
        for i in range(len(labels)):
            if np.argmax(scores[i]) != labels[i]:
                wrong = wrong + 1
        total = total + loss.item() * len(labels)
        count = count + len(labels)
        if opt is not None:
            opt.reset_grad()
            loss.backward()
            opt.step()
    return wrong / count, total / count
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw2.train_mnist)
    np.random.seed(4)
    folder = Path(data_dir)
    train_set = ndl.data.MNISTDataset(
        folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz"
    )
    test_set = ndl.data.MNISTDataset(
        folder / "t10k-images-idx3-ubyte.gz", folder / "t10k-labels-idx1-ubyte.gz"
    )
    train = ndl.data.DataLoader(train_set, batch_size, shuffle=True)
    test = ndl.data.DataLoader(test_set, batch_size, shuffle=False)
    model = MLPResNet(784, hidden_dim)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(epochs):
        train_error, train_loss = epoch(train, model, opt)
    test_error, test_loss = epoch(test, model)
    return train_error, train_loss, test_error, test_loss
    ### END YOUR SOLUTION
