{# No two rows have the same values in all of these columns. #}
{% test unique_together(model, columns) %}
select {{ columns | join(', ') }}
from {{ model }}
group by {{ columns | join(', ') }}
having count(*) > 1
{% endtest %}


{# No row meets this condition. #}
{% test never(model, condition) %}
select *
from {{ model }}
where {{ condition }}
{% endtest %}
