# The plain student's answers to hw4, written from the handout alone.

    ### BEGIN YOUR SOLUTION (hw4.array_api.reshape)
    return a.compact().reshape(new_shape)
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.array_api.broadcast_to)
    return a.broadcast_to(new_shape)
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.array_api.permute)
    return a.permute(axes)
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.array_api.maximum)
    return a.maximum(b)
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.array_api.log)
    return a.log()
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.array_api.exp)
    return a.exp()
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.array_api.tanh)
    return a.tanh()
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.array_api.sum)
    return a.sum(axis, keepdims)
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.array_api.max)
    return a.max(axis, keepdims)
    ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.ndarray.flip)
        strides = list(self._strides)
        offset = self._offset
        for k in flipped:
            offset = offset + (self._shape[k] - 1) * self._strides[k]
            strides[k] = -self._strides[k]
        return _view(self._device, self._handle, self._shape, tuple(strides), offset)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.ndarray.pad)
        shape = []
        middle = []
        for k in range(self.ndim):
            before, after = pairs[k]
            shape.append(before + self._shape[k] + after)
            middle.append(slice(before, before + self._shape[k]))
        out = full(tuple(shape), 0.0, dtype=self.dtype, device=self._device)
        out[tuple(middle)] = self
        return out
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.cifar10_dataset.init)
        if train:
            files = training_files(Path(base_folder))
        else:
            files = [Path(base_folder) / "test_batch"]
        images = []
        labels = []
        for file in files:
            pixels, numbers = read_batch(file)
            for i in range(len(numbers)):
                images.append(pixels[i].reshape(SHAPE))
                labels.append(numbers[i])
        self.X = np.zeros((len(images), 3, 32, 32), dtype=np.float32)
        self.y = np.zeros(len(images), dtype=np.uint8)
        for i in range(len(images)):
            self.X[i] = images[i] / 255
            self.y[i] = labels[i]
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.cifar10_dataset.len)
        return self.X.shape[0]
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.cifar10_dataset.getitem)
        images = self.X[index]
        labels = self.y[index]
        if not self.transforms:
            return images, labels
        if images.ndim == 3:
            return self.apply_transforms(images), labels
        if len(images) == 0:
            return images, labels
        changed = []
        for i in range(len(images)):
            changed.append(self.apply_transforms(images[i]))
        return np.array(changed), labels
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.tanh.compute)
        return array_api.tanh(a)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.tanh.gradient)
        return out_grad - out_grad * node * node
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.sigmoid.compute)
        return 1 / (1 + array_api.exp(-a))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.sigmoid.gradient)
        return out_grad * (node - node * node)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.stack.compute)
        shape = list(parts[0].shape)
        shape.insert(self.axis, len(parts))
        out = array_api.full_like(parts[0], 0, shape=tuple(shape))
        for i in range(len(parts)):
            index = [slice(None)] * len(shape)
            index[self.axis] = i
            out[tuple(index)] = parts[i]
        return out
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.stack.gradient)
        return split(out_grad, self.axis)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.split.compute)
        shape = list(a.shape)
        count = shape.pop(self.axis)
        parts = []
        for i in range(count):
            index = [slice(None)] * len(a.shape)
            index[self.axis] = slice(i, i + 1)
            parts.append(array_api.reshape(a[tuple(index)], tuple(shape)))
        return tuple(parts)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.split.gradient)
        return stack(out_grad, self.axis)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.flip.compute)
        return array_api.flip(a, self.axes)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.flip.gradient)
        return flip(out_grad, self.axes)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.dilate.compute)
        for axis in self.axes:
            shape = list(a.shape)
            shape[axis] = shape[axis] * (self.dilation + 1)
            out = array_api.full_like(a, 0, shape=tuple(shape))
            for i in range(a.shape[axis]):
                read = [slice(None)] * len(shape)
                write = [slice(None)] * len(shape)
                read[axis] = slice(i, i + 1)
                write[axis] = slice(i * (self.dilation + 1), i * (self.dilation + 1) + 1)
                out[tuple(write)] = a[tuple(read)]
            a = out
        return a
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.dilate.gradient)
        return undilate(out_grad, self.axes, self.dilation)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.undilate.compute)
        index = [slice(None)] * len(a.shape)
        for axis in self.axes:
            index[axis] = slice(0, a.shape[axis], self.dilation + 1)
        return a[tuple(index)]
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.undilate.gradient)
        return dilate(out_grad, self.axes, self.dilation)
        ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.window_view)
    n, h, w, c = shape
    kh, kw = kernel
    oh = (h - kh) // stride[0] + 1
    ow = (w - kw) // stride[1] + 1
    down = strides[1]
    right = strides[2]
    view_strides = (strides[0], stride[0] * down, stride[1] * right, down, right, strides[3])
    return (n, oh, ow, kh, kw, c), view_strides
    ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.conv.compute)
        kh, kw, c_in, c_out = b.shape
        windows = _windows_of(a, (kh, kw), self.stride, self.padding)
        n, oh, ow = windows.shape[0], windows.shape[1], windows.shape[2]
        rows = array_api.reshape(windows, (n * oh * ow, kh * kw * c_in))
        weight = array_api.reshape(b, (kh * kw * c_in, c_out))
        return array_api.reshape(rows @ weight, (n, oh, ow, c_out))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.conv.weight_gradient)
        kh, kw, c_in, c_out = b.shape
        n, oh, ow, _ = out_grad.shape
        windows = Windows((kh, kw), self.stride, self.padding)(a)
        rows = reshape(windows, (n * oh * ow, kh * kw * c_in))
        G = reshape(out_grad, (n * oh * ow, c_out))
        return reshape(matmul(transpose(rows), G), (kh, kw, c_in, c_out))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.conv.input_gradient)
        kh, kw, c_in, c_out = b.shape
        n, oh, ow, _ = out_grad.shape
        G = reshape(out_grad, (n * oh * ow, c_out))
        weight = reshape(b, (kh * kw * c_in, c_out))
        windows = reshape(matmul(G, transpose(weight)), (n, oh, ow, kh, kw, c_in))
        return Fold(self.stride, self.padding, a.shape)(windows)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.fold.compute)
        n, h, w, c = self.shape
        ph, pw = self.padding
        sh, sw = self.stride
        _, oh, ow, kh, kw, _ = a.shape
        out = array_api.full_like(a, 0, shape=(n, h + 2 * ph, w + 2 * pw, c))
        for k in range(kh):
            for l in range(kw):
                part = array_api.reshape(a[:, :, :, k : k + 1, l : l + 1, :], (n, oh, ow, c))
                rows = slice(k, k + (oh - 1) * sh + 1, sh)
                columns = slice(l, l + (ow - 1) * sw + 1, sw)
                out[:, rows, columns, :] = out[:, rows, columns, :] + part
        return out[:, ph : ph + h, pw : pw + w, :]
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.conv_layer.init)
        fan_in = in_channels * kh * kw
        fan_out = out_channels * kh * kw
        shape = (kh, kw, in_channels, out_channels)
        self.weight = Parameter(
            init.kaiming_uniform(fan_in, fan_out, shape=shape, device=device, dtype=dtype)
        )
        self.bias = None
        if bias:
            bound = 1 / math.sqrt(fan_in)
            self.bias = Parameter(
                init.rand(out_channels, low=-bound, high=bound, device=device, dtype=dtype)
            )
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.conv_layer.forward)
        x = ops.permute(x, TO_NHWC)
        y = ops.conv(x, self.weight, self.stride, self.padding)
        if self.bias is not None:
            y = y + ops.broadcast_to(self.bias, y.shape)
        return ops.permute(y, TO_NCHW)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.conv_bn.init)
        conv = nn.Conv(
            in_channels, out_channels, kernel_size, stride, device=device, dtype=dtype
        )
        norm = nn.BatchNorm2d(out_channels, device=device, dtype=dtype)
        super().__init__(conv, norm, nn.ReLU())
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.resnet9.init)
        self.a = ConvBN(3, 16, 7, 4, device, dtype)
        self.b = ConvBN(16, 32, 3, 2, device, dtype)
        self.c1 = ConvBN(32, 32, 3, 1, device, dtype)
        self.c2 = ConvBN(32, 32, 3, 1, device, dtype)
        self.d = ConvBN(32, 64, 3, 2, device, dtype)
        self.e = ConvBN(64, 128, 3, 2, device, dtype)
        self.f1 = ConvBN(128, 128, 3, 1, device, dtype)
        self.f2 = ConvBN(128, 128, 3, 1, device, dtype)
        self.flatten = nn.Flatten()
        self.linear1 = nn.Linear(128, 128, device=device, dtype=dtype)
        self.relu = nn.ReLU()
        self.linear2 = nn.Linear(128, 10, device=device, dtype=dtype)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.resnet9.forward)
        x = self.b(self.a(x))
        x = x + self.c2(self.c1(x))
        x = self.e(self.d(x))
        x = x + self.f2(self.f1(x))
        x = self.flatten(x)
        return self.linear2(self.relu(self.linear1(x)))
        ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.epoch_general_cifar10)
    np.random.seed(4)
    if opt is None:
        model.eval()
    else:
        model.train()
    right = 0
    count = 0
    total = 0.0
    for x, y in dataloader:
        logits = model(x)
        loss = loss_fn(logits, y)
        numbers = logits.numpy()
        labels = y.numpy()
        for i in range(len(labels)):
            if int(np.argmax(numbers[i])) == int(labels[i]):
                right += 1
        count += len(labels)
        total += float(loss.numpy()) * len(labels)
        if opt is not None:
            opt.reset_grad()
            loss.backward()
            opt.step()
    return right / count, total / count
    ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.recurrent_cell.init)
        columns = self.blocks * hidden_size
        bound = 1 / math.sqrt(hidden_size)

        def draw(*shape):
            return Parameter(
                init.rand(*shape, low=-bound, high=bound, device=device, dtype=dtype)
            )

        self.W_ih = draw(input_size, columns)
        self.W_hh = draw(hidden_size, columns)
        self.bias_ih = None
        self.bias_hh = None
        if bias:
            self.bias_ih = draw(columns)
            self.bias_hh = draw(columns)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.recurrent_cell.project)
        sums = X @ self.W_ih
        if self.bias_ih is not None:
            sums = sums + ops.broadcast_to(self.bias_ih + self.bias_hh, sums.shape)
        return sums
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.rnn_cell.step)
        return NONLINEARITIES[self.nonlinearity](state @ self.W_hh + projected)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.rnn_cell.forward)
        return self.step(self.project(X), h)
        ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.recurrent.states_over_time)
    seq, batch, features = X.shape
    projected = cell.project(ops.reshape(X, (seq * batch, features)))
    columns = projected.shape[1]
    parts = ops.split(ops.reshape(projected, (seq, batch, columns)), 0)
    states = []
    for t in range(seq):
        state = cell.step(parts[t], state)
        states.append(state)
    return states
    ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.rnn.init)
        self.rnn_cells = []
        for size in self._input_sizes():
            self.rnn_cells.append(RNNCell(size, hidden_size, bias, nonlinearity, device, dtype))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.rnn.forward)
        first = ops.split(initial, 0)
        last = []
        for i in range(self.num_layers):
            states = _states_over_time(self.rnn_cells[i], X, first[i])
            last.append(states[-1])
            X = ops.stack(states, 0)
        return X, ops.stack(last, 0)
        ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.lstm_cell.blocks)
    batch, columns = sums.shape
    return ops.split(ops.reshape(sums, (batch, count, columns // count)), 1)
    ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.lstm_cell.step)
        h, c = state
        i, f, g, o = _blocks(h @ self.W_hh + projected, 4)
        c = ops.sigmoid(i) * ops.tanh(g) + ops.sigmoid(f) * c
        h = ops.sigmoid(o) * ops.tanh(c)
        return h, c
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.lstm_cell.forward)
        state = _pair_or_zeros("LSTMCell", h, (X.shape[0], self.hidden_size), X)
        return self.step(self.project(X), state)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.lstm.init)
        self.lstm_cells = []
        for size in self._input_sizes():
            self.lstm_cells.append(LSTMCell(size, hidden_size, bias, device, dtype))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.lstm.forward)
        first_h = ops.split(h0, 0)
        first_c = ops.split(c0, 0)
        last_h = []
        last_c = []
        for i in range(self.num_layers):
            states = _states_over_time(self.lstm_cells[i], X, (first_h[i], first_c[i]))
            last_h.append(states[-1][0])
            last_c.append(states[-1][1])
            X = ops.stack([state[0] for state in states], 0)
        return X, (ops.stack(last_h, 0), ops.stack(last_c, 0))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.dictionary.add_word)
        if word not in self.word2idx:
            self.word2idx[word] = len(self.idx2word)
            self.idx2word.append(word)
        return self.word2idx[word]
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.dictionary.len)
        return len(self.idx2word)
        ### END YOUR SOLUTION

                ### BEGIN YOUR SOLUTION (hw4.corpus.tokenize)
                numbers = []
                count = 0
                while max_lines is None or count < max_lines:
                    line = lines.readline()
                    if line == "":
                        break
                    for word in line.split():
                        numbers.append(self.dictionary.add_word(word))
                    numbers.append(self.dictionary.add_word(END_OF_LINE))
                    count += 1
                return numbers
                ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.batchify)
    rows = len(data) // batch_size
    batches = np.zeros((rows, batch_size), dtype=dtype)
    for column in range(batch_size):
        for row in range(rows):
            batches[row, column] = data[column * rows + row]
    return batches
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.get_batch)
    L = min(bptt, len(batches) - 1 - i)
    targets = []
    for row in range(i + 1, i + 1 + L):
        for word in batches[row]:
            targets.append(word)
    x = Tensor(batches[i : i + L], device=device, dtype=dtype, requires_grad=False)
    y = Tensor(np.array(targets), device=device, dtype=dtype, requires_grad=False)
    return x, y
    ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.embedding.init)
        self.weight = Parameter(
            init.randn(num_embeddings, embedding_dim, device=device, dtype=dtype)
        )
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.embedding.forward)
        hot = init.one_hot(
            self.num_embeddings, x, device=self.weight.device, dtype=self.weight.dtype
        )
        rows = ops.reshape(hot, (x.size, self.num_embeddings)) @ self.weight
        return ops.reshape(rows, tuple(x.shape) + (self.embedding_dim,))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.language_model.init)
        self.embedding = nn.Embedding(output_size, embedding_size, device=device, dtype=dtype)
        self.seq_model, width = sequence_model(
            seq_model, embedding_size, hidden_size, num_layers, seq_len, device=device, dtype=dtype
        )
        self.linear = nn.Linear(width, output_size, device=device, dtype=dtype)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw4.language_model.forward)
        output, h = self.seq_model(self.embedding(x), h)
        seq, batch, width = output.shape
        return self.linear(ndl.ops.reshape(output, (seq * batch, width))), h
        ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw4.epoch_general_ptb)
    np.random.seed(4)
    if opt is None:
        model.eval()
    else:
        model.train()
    right = 0
    count = 0
    total = 0.0
    h = None
    start = 0
    while start < len(data) - 1:
        x, y = ndl.data.get_batch(data, start, seq_len, device=device, dtype=dtype)
        logits, h = model(x, h)
        h = detached(h)
        loss = loss_fn(logits, y)
        numbers = logits.numpy()
        labels = y.numpy()
        for i in range(len(labels)):
            if int(np.argmax(numbers[i])) == int(labels[i]):
                right += 1
        count += len(labels)
        total += float(loss.numpy()) * len(labels)
        if opt is not None:
            opt.reset_grad()
            loss.backward()
            if clip is not None:
                opt.clip_grad_norm(clip)
            opt.step()
        start += seq_len
    return right / count, total / count
    ### END YOUR SOLUTION
