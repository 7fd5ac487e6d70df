"""Abilities of several scenarios: the covariance that generated them is found again."""

import numpy as np

from sklearn_irt.kernels.correlated import block_diagonal, correlate

TRUE = np.array([[1.0, 0.3, 0.8], [0.3, 1.0, 0.0], [0.8, 0.0, 1.0]])


def fits(n_models, noise, lacking=0.0, seed=0):
    """Posteriors of two scenarios (two abilities and one) under standard normal priors."""
    rng = np.random.default_rng(seed)
    ability = rng.multivariate_normal(np.zeros(3), TRUE, n_models)
    seen = ability + np.sqrt(noise) * rng.normal(size=ability.shape)
    information = np.full((n_models, 3), 1.0 / noise)
    information[rng.random(n_models) < lacking, 2] = 0.0
    variance = 1.0 / (1.0 + information)
    mean = variance * information * seen
    blocks = [np.eye(2) * variance[:, :2, None], variance[:, 2:, None]]
    return ability, [mean[:, :2], mean[:, 2:]], blocks, information[:, 2] == 0.0


def test_covariance_is_recovered_also_where_a_scenario_is_missing():
    for lacking in (0.0, 0.6):
        _, means, blocks, _ = fits(4000, 0.2, lacking)
        found = correlate(means, blocks, n_iter=200)
        np.testing.assert_allclose(found.prior_covariance, TRUE, atol=0.08)


def test_other_scenarios_tell_about_a_missing_one():
    ability, means, blocks, missing = fits(3000, 0.2, 0.5)
    found = correlate(means, blocks, n_iter=200)
    assert not means[1][missing].any()
    assert np.corrcoef(found.ability[missing, 2], ability[missing, 2])[0, 1] > 0.65
    error = ((found.ability - ability) ** 2).mean(axis=0)
    alone = ((np.concatenate(means, axis=1) - ability) ** 2).mean(axis=0)
    assert (error < alone).all()
    # The stated variances are the errors made.
    np.testing.assert_allclose(
        np.einsum("ldd->d", found.covariance) / len(ability), error, rtol=0.1
    )


def test_posterior_is_that_of_the_joint_normal():
    _, means, blocks, _ = fits(6, 0.5)
    found = correlate(means, blocks, n_iter=1)
    stacked, covariance = np.concatenate(means, axis=1), block_diagonal(blocks)
    prior = stacked.T @ stacked / 6 + covariance.mean(axis=0)
    np.testing.assert_allclose(found.prior_covariance, prior)
    for row in range(6):
        said = np.linalg.inv(covariance[row]) - np.eye(3)
        expected = np.linalg.inv(said + np.linalg.inv(prior))
        np.testing.assert_allclose(found.covariance[row], expected, atol=1e-9)
        linear = np.linalg.solve(covariance[row], stacked[row])
        np.testing.assert_allclose(found.ability[row], expected @ linear, atol=1e-9)
