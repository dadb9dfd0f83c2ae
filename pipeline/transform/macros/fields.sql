{# Written by `uv run python dev/columns.py` from tap_public_jobs/schemas. #}
{% macro fields() %}
    {{ return({
        'jobs': {
            'public_id': 'text',
            'job_title': 'text',
            'location': 'text',
            'department': 'text',
            'type': 'text',
            'seniority_level': 'text',
            'min_salary': 'number',
            'max_salary': 'number',
            'currency': 'text',
            'job_url': 'text',
            'apply_url': 'text'
        },
        'job_details': {
            'role_overview': 'text',
            'years_experience': 'number',
            'primary_language': 'text',
            'education_level': 'text',
            'knockout_questions': 'json'
        },
    }) }}
{% endmacro %}


{# The columns of the tables that have extra_fields, too. #}
{% macro own_columns() %}
    {{ return([
        'additional_fields',
        'annual_high',
        'annual_low',
        'annual_middle',
        'apply_url',
        'city',
        'closed_after',
        'closed_by',
        'country',
        'currency',
        'days_open',
        'department',
        'department_median_days',
        'education_level',
        'has_salary',
        'id',
        'in_force_from',
        'in_force_until',
        'is_open',
        'is_remote',
        'job_key',
        'job_title',
        'job_url',
        'knockout_questions',
        'last_changed_by',
        'last_seen_at',
        'location',
        'max_salary',
        'min_salary',
        'opened_after',
        'opened_by',
        'organisation',
        'periods',
        'primary_language',
        'public_id',
        'reposted_after',
        'reposted_from',
        'role_overview',
        'salary_high',
        'salary_low',
        'salary_middle',
        'salary_period',
        'seniority_level',
        'type',
        'updated_at',
        'version',
        'was_open_before',
        'years_experience',
    ]) }}
{% endmacro %}
