# The plain student's answers to hw5, written from the handout alone.
        ### BEGIN YOUR SOLUTION (hw5.attention.forward)
        D = q.shape[3]
        scores = self.matmul(q / math.sqrt(D), k)
        if self.causal:
            T = q.shape[2]
            S = k.shape[2]
            mask = Tensor.make_const(self.create_causal_mask(T, S, q.device, q.dtype))
            scores = mask.broadcast_to(scores.shape) + scores
        probs = self.softmax(scores)
        probs = self.dropout(probs)
        result = self.matmul(probs, v.transpose())
        return result, probs
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw5.attention_layer.heads)
        B = x.shape[0]
        T = x.shape[1]
        F = x.shape[2]
        rows = x.reshape((B * T, F))
        rows = norm(rows)
        rows = projection(rows)
        y = rows.reshape((B, T, self.num_head, self.dim_head))
        return y.transpose((1, 2))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw5.attention_layer.forward)
        B = q.shape[0]
        T = q.shape[1]
        v2 = self.heads(v, self.prenorm_v, self.v_projection)
        k2 = self.heads(k, self.prenorm_k, self.k_projection)
        q2 = self.heads(q, self.prenorm_q, self.q_projection)
        both = self.attn(q2, k2, v2)
        y = both[0]
        y = y.transpose((1, 2))
        y = y.reshape((B * T, self.num_head * self.dim_head))
        y = self.out_projection(y)
        return y.reshape((B, T, self.out_features))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw5.transformer_layer.init)
        self.attention = AttentionLayer(
            q_features, num_head, dim_head, dropout=dropout, causal=causal, **place
        )
        self.norm = LayerNorm1d(q_features, **place)
        self.linear1 = Linear(q_features, hidden_size, **place)
        self.linear2 = Linear(hidden_size, q_features, **place)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw5.transformer_layer.forward)
        B = x.shape[0]
        T = x.shape[1]
        F = x.shape[2]
        rows = self.attention(x).reshape((B * T, F))
        rows = self.dropout1(rows) + x.reshape((B * T, F))
        y = self.norm(rows)
        y = self.linear1(y)
        y = ops.relu(y)
        y = self.dropout2(y)
        y = self.linear2(y)
        y = self.dropout3(y)
        rows = y + rows
        return rows.reshape((B, T, F))
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw5.transformer.init)
        self.positions = Embedding(sequence_len, embedding_size, **place)
        self.layers = []
        for i in range(num_layers):
            layer = TransformerLayer(
                embedding_size,
                num_head,
                dim_head,
                hidden_size,
                dropout=dropout,
                causal=causal,
                **place,
            )
            self.layers.append(layer)
        ### END YOUR SOLUTION

        ### BEGIN YOUR SOLUTION (hw5.transformer.forward)
        if not self.batch_first:
            x = x.transpose((0, 1))
        T = x.shape[1]
        ids = np.zeros((1, T))
        for t in range(T):
            ids[0, t] = t
        ids = Tensor(ids, device=x.device, requires_grad=False)
        x = self.positions(ids).broadcast_to(x.shape) + x
        for layer in self.layers:
            x = layer(x)
        if not self.batch_first:
            x = x.transpose((0, 1))
        return x, init.zeros_like(x)
        ### END YOUR SOLUTION
