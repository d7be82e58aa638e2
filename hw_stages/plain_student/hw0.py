# The plain student's answers to hw0, written from the handout alone.

    ### BEGIN YOUR SOLUTION (hw0.add)
    return x + y
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw0.parse_mnist)
    with gzip.open(image_filename) as f:
        images = f.read()
    with gzip.open(label_filename) as f:
        labels = f.read()
    magic, n, rows, columns = struct.unpack(">4I", images[:16])
    size = rows * columns
    check_idx(image_filename, magic, 2051, len(images), 16 + n * size)
    magic, count = struct.unpack(">2I", labels[:8])
    check_idx(label_filename, magic, 2049, len(labels), 8 + count)
    if count != n:
        raise ValueError(f"[parse_mnist] {n} images but {count} labels")
    X = np.zeros((n, size), dtype=np.float32)
    y = np.zeros(n, dtype=np.uint8)
    for i in range(n):
        image = images[16 + i * size : 16 + (i + 1) * size]
        X[i] = np.array(list(image), dtype=np.float32) / 255
        y[i] = labels[8 + i]
    return X, y
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw0.softmax_loss)
    n = Z.shape[0]
    k = Z.shape[1]
    total = 0.0
    for i in range(n):
        s = 0.0
        for j in range(k):
            s = s + np.exp(Z[i, j])
        total = total + np.log(s) - Z[i, y[i]]
    return total / n
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw0.softmax_gradient)
    G = np.exp(Z)
    for i in range(G.shape[0]):
        s = 0.0
        for j in range(G.shape[1]):
            s = s + G[i, j]
        for j in range(G.shape[1]):
            G[i, j] = G[i, j] / s
        G[i, y[i]] = G[i, y[i]] - 1
    return G
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw0.softmax_regression_epoch)
    m = X.shape[0]
    k = theta.shape[1]
    start = 0
    while start < m:
        Xb = X[start : start + batch]
        yb = y[start : start + batch]
        b = Xb.shape[0]
        G = softmax_gradient(Xb @ theta, yb)
        for i in range(b):
            for c in range(k):
                theta[:, c] -= lr / b * G[i, c] * Xb[i]
        start = start + batch
    ### END YOUR SOLUTION

    ### BEGIN YOUR SOLUTION (hw0.nn_epoch)
    m = X.shape[0]
    start = 0
    while start < m:
        Xb = X[start : start + batch]
        yb = y[start : start + batch]
        b = Xb.shape[0]
        A = Xb @ W1
        Z1 = np.where(A > 0, A, 0)
        G2 = softmax_gradient(Z1 @ W2, yb)
        G1 = G2 @ W2.T
        for i in range(b):
            for j in range(G1.shape[1]):
                if not Z1[i, j] > 0:
                    G1[i, j] = 0
        step1 = Xb.T @ G1
        step2 = Z1.T @ G2
        for i in range(W1.shape[0]):
            W1[i] -= lr / b * step1[i]
        for i in range(W2.shape[0]):
            W2[i] -= lr / b * step2[i]
        start = start + batch
    ### END YOUR SOLUTION
