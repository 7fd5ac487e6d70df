"""Every public estimator passes every scikit-learn check, default-constructed."""

import ast
import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.utils.estimator_checks as checks
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import sklearn_irt
from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor

ESTIMATORS = [IRTRegressor, AnchorSelector, GPIRTEstimator]
TRANSFORMERS = [IRTRegressor, AnchorSelector]
REGRESSORS = [IRTRegressor, GPIRTEstimator]

# Estimator -> {check: reason}. None of ours is expected to fail.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "Pipeline": {  # of scikit-learn's own
        "check_dont_overwrite_parameters": "Pipeline fits its steps in place",
        "check_estimators_overwrite_params": "Pipeline fits its steps in place",
        "check_estimators_nan_inf": "Pipeline has no tag allow_nan, though its steps have",
        "check_supervised_y_no_nan": "wants scikit-learn's message word for word in its modules",
    },
}

# What parametrize_with_checks does not yield, called below.
EXTRA_ALL = ["check_param_validation", "check_dataframe_column_names_consistency"]
EXTRA_TRANSFORMERS = [
    "check_get_feature_names_out_error",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
]

CLASSIFIER = "none is a classifier"
CLUSTERER = "none is a clusterer"
OUTLIERS = "none is an outlier detector"
WEIGHTS = "no fit takes sample_weight: every model of the training set counts the same"
ARRAY_API = "arrays are NumPy's; the check for NumPy input is yielded"
NOT_APPLICABLE = {
    "check_all_zero_sample_weights_error": WEIGHTS,
    "check_array_api_input": ARRAY_API,  # yielded by later versions
    "check_array_api_input_and_values": ARRAY_API,
    "check_array_api_mixed_inputs": ARRAY_API,
    "check_array_api_same_namespace": ARRAY_API,
    "check_class_weight_balanced_classifiers": CLASSIFIER,
    "check_class_weight_balanced_linear_classifier": CLASSIFIER,
    "check_class_weight_classifiers": CLASSIFIER,
    "check_classifier_data_not_an_array": CLASSIFIER,
    "check_classifier_multioutput": CLASSIFIER,
    "check_classifier_not_supporting_multiclass": CLASSIFIER,
    "check_classifiers_classes": CLASSIFIER,
    "check_classifiers_multilabel_output_format_decision_function": CLASSIFIER,
    "check_classifiers_multilabel_output_format_predict": CLASSIFIER,
    "check_classifiers_multilabel_output_format_predict_proba": CLASSIFIER,
    "check_classifiers_multilabel_representation_invariance": CLASSIFIER,
    "check_classifiers_one_label": CLASSIFIER,
    "check_classifiers_one_label_sample_weights": CLASSIFIER,
    "check_classifiers_predictions": CLASSIFIER,
    "check_classifiers_regression_target": CLASSIFIER,
    "check_classifiers_train": CLASSIFIER,
    "check_decision_proba_consistency": CLASSIFIER,
    "check_clusterer_compute_labels_predict": CLUSTERER,
    "check_clustering": CLUSTERER,
    "check_outlier_contamination": OUTLIERS,
    "check_outlier_corruption": OUTLIERS,
    "check_outliers_fit_predict": OUTLIERS,
    "check_outliers_train": OUTLIERS,
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
    "check_sample_weights_list": WEIGHTS,
    "check_sample_weights_not_an_array": WEIGHTS,
    "check_sample_weights_not_overwritten": WEIGHTS,
    "check_sample_weights_pandas_series": WEIGHTS,
    "check_sample_weights_shape": WEIGHTS,
    "check_estimator": "runs the checks that are yielded",
    "check_estimators_data_not_an_array": "the body of check_regressor_data_not_an_array",
    "check_estimators_nan_inf": "NaN is accepted (allow_nan); infinity: see test_responses.py",
    "check_fit_non_negative": "negative responses are accepted",
    "check_inplace_ensure_writeable": "no parameter copy: nothing is written in place",
    "check_nonsquare_error": "X is not pairwise",
    "check_regressor_multioutput": "y is one score per model",
    "check_requires_y_none": "y is optional",
    "check_sparsify_coefficients": "no method sparsify",
    "check_transformers_unfitted_stateless": "every estimator must be fitted",
}
NOT_A_TRANSFORMER = {
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_transformer_n_iter",
    "check_transformer_preserve_dtypes",
    "check_transformers_unfitted",
    *EXTRA_TRANSFORMERS,
}
NOT_A_REGRESSOR = {
    "check_estimators_partial_fit_n_features",
    "check_non_transformer_estimators_n_iter",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_regressors_no_decision_function",
    "check_regressors_train",
    "check_supervised_y_2d",
    "check_supervised_y_no_nan",
}


def _expected_failures(estimator) -> dict[str, str]:
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


def _name(check) -> str:
    while hasattr(check, "func"):
        check = check.func
    return check.__name__


def _quietly(check, estimator):
    """Random numbers are no responses: warnings about their range and k are in order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def _every_check(estimators):
    """parametrize_with_checks, which hands pytest a generator in scikit-learn 1.6: deprecated."""
    mark = parametrize_with_checks(estimators, expected_failed_checks=_expected_failures).mark
    return pytest.mark.parametrize(mark.args[0], list(mark.args[1]), **mark.kwargs)


@_every_check([Estimator() for Estimator in ESTIMATORS])
def test_scikit_learn_check(estimator, check):
    _quietly(check, estimator)


@pytest.mark.slow
@_every_check([make_pipeline(AnchorSelector(), GPIRTEstimator())])
def test_scikit_learn_check_of_the_pipeline(estimator, check):
    _quietly(check, estimator)


EXTRA_PAIRS = [(E, name) for E in ESTIMATORS for name in EXTRA_ALL] + [
    (E, name) for E in TRANSFORMERS for name in EXTRA_TRANSFORMERS
]


@pytest.mark.parametrize(
    ("Estimator", "name"), EXTRA_PAIRS, ids=[f"{E.__name__}-{name}" for E, name in EXTRA_PAIRS]
)
def test_scikit_learn_check_that_is_not_yielded(Estimator, name):
    if "polars" in name:
        pytest.importorskip("polars")
    assert hasattr(Estimator, "set_output") or "output" not in name
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        getattr(checks, name)(Estimator.__name__, Estimator())
    assert not [w for w in record if issubclass(w.category, FutureWarning)]
    if name == "check_dataframe_column_names_consistency":
        assert not [w for w in record if "was fitted without feature names" in str(w.message)]


def test_pipeline_is_consistent_in_column_names():
    estimator = make_pipeline(AnchorSelector(), GPIRTEstimator())
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        checks.check_dataframe_column_names_consistency("Pipeline", estimator)
    assert not [w for w in record if "was fitted without feature names" in str(w.message)]


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_no_scikit_learn_check_is_forgotten(Estimator):
    every = {
        name
        for name, value in vars(checks).items()
        if name.startswith("check_") and getattr(value, "__module__", None) == checks.__name__
    }
    assert len(every) > 80
    yielded = {_name(check) for _, check in estimator_checks_generator(Estimator(), legacy=True)}
    called = yielded | set(EXTRA_ALL)
    excused = set(NOT_APPLICABLE)
    if Estimator in TRANSFORMERS:
        called |= set(EXTRA_TRANSFORMERS)
    else:
        excused |= NOT_A_TRANSFORMER
    if Estimator not in REGRESSORS:
        excused |= NOT_A_REGRESSOR
    assert every - called - excused == set()
    assert (called & excused) - {"check_array_api_input"} == set()
    assert _expected_failures(Estimator()).keys() <= called


def test_every_public_estimator_is_listed():
    public = [getattr(sklearn_irt, name) for name in sklearn_irt.__all__]
    assert set(ESTIMATORS) == {
        value for value in public if inspect.isclass(value) and hasattr(value, "fit")
    }


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_constraints_are_those_of_the_constructor(Estimator):
    parameters = list(inspect.signature(Estimator).parameters.values())
    assert list(Estimator._parameter_constraints) == [p.name for p in parameters]
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters[1:])
    defaults = Estimator()
    for p in parameters:
        assert getattr(defaults, p.name) is p.default


# As scikit-learn's own test: RT02 wants the type alone in Returns, GL01 and GL02 are about line
# breaks at the quotes, SS05 takes the plural "Abilities" for a verb; and a
# method needs no example, See Also or extended summary.
IGNORED = {"RT02", "GL01", "GL02", "SS05"}
IGNORED_IN_METHODS = {"EX01", "SA01", "ES01"}
# Standard names say it all: random_state, n_features_in_, y ignored, an estimator returned.
SELF_EXPLANATORY = {"PR07", "RT03", "PR06", "PR08", "PR09", "RT04", "RT05"}


def _documented():
    for Estimator in ESTIMATORS:
        yield Estimator, None
        for name, value in vars(Estimator).items():
            if not name.startswith("_") and inspect.isfunction(value):
                yield Estimator, name


@pytest.mark.parametrize(
    ("Estimator", "method"), list(_documented()), ids=lambda v: getattr(v, "__name__", str(v))
)
def test_docstring_follows_numpydoc(Estimator, method):
    validate = pytest.importorskip("numpydoc.validate").validate
    path = ".".join(filter(None, [Estimator.__module__, Estimator.__name__, method]))
    ignored = IGNORED | SELF_EXPLANATORY | (IGNORED_IN_METHODS if method else set())
    errors = [(code, text) for code, text in validate(path)["errors"] if code not in ignored]
    assert errors == []


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_parameters_and_attributes_are_those_documented(Estimator):
    docscrape = pytest.importorskip("numpydoc.docscrape")
    documented = docscrape.ClassDoc(Estimator)
    parameters = [p.name for p in documented["Parameters"]]
    assert parameters == list(inspect.signature(Estimator).parameters)
    values = np.random.RandomState(0).randint(0, 2, (12, 15)).astype(float)
    X = pd.DataFrame(values, columns=[f"q{i}" for i in range(15)])
    params = {"k": 5} if Estimator is AnchorSelector else {}
    fitted = Estimator(**params).fit(X)
    attributes = {name for name in vars(fitted) if name.endswith("_") and name[0] != "_"}
    assert attributes == {p.name for p in documented["Attributes"]}


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_defaults_in_the_docstring_are_those_of_the_constructor(Estimator):
    docscrape = pytest.importorskip("numpydoc.docscrape")
    signature = inspect.signature(Estimator).parameters
    for p in docscrape.ClassDoc(Estimator)["Parameters"]:
        assert "default=" in p.type, p.name
        stated = ast.literal_eval(p.type.split("default=")[1])
        assert stated == signature[p.name].default, p.name
